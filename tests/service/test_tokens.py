"""Tokens of front ends: encrypted, of one length and one spelling; whatever else is given is refused alike."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo.errors import InvalidInput, InvalidToken
from diminuendo.service.front.tokens import NO_ROUND, Tokens, layout
from diminuendo.service.records import Shown

ONE, TWO = bytes(range(32)), bytes(range(1, 33))
SHOWN = Shown(3, 2**40, 17, True, (5, -1, 70_000), 9)


@given(
    st.builds(
        Shown,
        st.integers(0, 2**32 - 1),
        st.integers(NO_ROUND, 2**62),
        st.integers(0, 2**32 - 1),
        st.booleans(),
        st.lists(st.integers(-1, 2**31 - 1), min_size=1, max_size=12).map(tuple),
        st.integers(0, 2**17),
    )
)
@settings(max_examples=50, deadline=None)
def test_what_was_shown_comes_back(shown: Shown) -> None:
    assert Tokens({7: ONE}).open(Tokens({7: ONE}).seal(shown)) == shown


def test_a_token_is_as_long_as_its_slots_and_never_the_same_twice() -> None:
    tokens = Tokens({1: ONE})
    encrypted = [tokens.seal(each) for each in (SHOWN, SHOWN, Shown(0, NO_ROUND, 0, False, (0, 0, 0)))]
    assert len(set(encrypted)) == 3
    assert len({len(token) for token in encrypted}) == 1


def test_every_change_is_refused_alike() -> None:
    tokens = Tokens({1: ONE})
    token = tokens.seal(SHOWN)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    forged = [token[:at] + letter + token[at + 1 :] for at in range(len(token)) for letter in ("A", "_", "9")]
    forged = [each for each in forged if each != token]
    forged += [token[:cut] for cut in range(len(token))] + [
        token + "A",
        token + "AAAA",
        token + "=",
        " " + token,
    ]
    forged += [
        token.replace(token[5], "+", 1),
        token + "\n",
        "é" * 120,
        "",
        alphabet,
        "A" * len(token),
        token * 2,
    ]
    forged += [Tokens({1: TWO}).seal(SHOWN), Tokens({2: ONE}).seal(SHOWN)]
    told = set()
    for each in forged:
        with pytest.raises(InvalidToken) as refused:
            tokens.open(each)
        told.add(str(refused.value))
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__
    assert len(told) == 1


def test_base64_leaves_no_bit_open() -> None:
    """Every slate is padded to a multiple of three bytes, so that no other spelling means the same."""
    for slots in range(1, 9):
        token = Tokens({1: ONE}).seal(Shown(1, 2, 3, True, (0,) * slots))
        assert "=" not in token
        assert len(base64.urlsafe_b64decode(token)) % 3 == 0
        assert layout(slots).size % 3 == 1  # and 41 bytes around it


def test_two_keys_are_good_while_one_takes_over() -> None:
    old = Tokens({1: ONE}).seal(SHOWN)
    both = Tokens({1: ONE, 2: TWO}, sign_with=2)
    assert both.open(old) == SHOWN
    new = both.seal(SHOWN)
    assert Tokens({2: TWO}).open(new) == SHOWN
    with pytest.raises(InvalidToken):
        Tokens({2: TWO}).open(old)
    assert "keys 1, 2" in repr(both)


@pytest.mark.parametrize(
    ("keys", "sign_with"),
    [({}, None), ({1: b"short"}, None), ({256: ONE}, None), ({1: ONE, 2: TWO}, None), ({1: ONE}, 2)],
)
def test_keys_are_checked(keys: dict[int, bytes], sign_with: int | None) -> None:
    with pytest.raises(InvalidInput):
        Tokens(keys, sign_with)
