"""People who are kept between releases: in one place, or in several that are asked at the same time."""
