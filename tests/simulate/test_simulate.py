"""The simulator: its numbers, its file format, and going on after an interruption."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from diminuendo import Coverage, Functions, NoisyOr, People, SeededCoins, make, replay
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners import Setting
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.simulate import expert_regrets, run, simulate
from diminuendo.simulate.plot import plot_payoff
from diminuendo.simulate.table import as_table, mean_and_half_width
from diminuendo.streams import taste_groups

PEOPLE = taste_groups(400, 15, groups=4, items_per_group=5, seed=2)


def test_the_numbers_are_what_they_say() -> None:
    found = simulate(PEOPLE, slots=3, seeds=2)
    base = found.benchmarks
    assert base.random < base.greedy.value <= base.optimum.lower + 1e-12 <= base.optimum.upper + 2e-12
    for result in found.results:
        learner = make(result.learner, Setting(15, 3, 400, "full"), coins=SeededCoins(result.seed))
        payoffs = PEOPLE.values(replay(learner, PEOPLE))
        assert result.mean_payoff == pytest.approx(payoffs.mean(), abs=1e-15)
        assert result.regret == pytest.approx(base.greedy.value - payoffs.mean(), abs=1e-15)
        assert result.regret_to_optimum == pytest.approx(
            ONE_MINUS_1_OVER_E * base.optimum.upper - payoffs.mean(), abs=1e-15
        )
        assert result.curve[-1] == pytest.approx(payoffs.sum())


def test_expert_regrets_by_hand() -> None:
    slates = replay(make("hedge", Setting(15, 3, 400, "full"), coins=SeededCoins(1)), PEOPLE)
    totals, own = np.zeros((3, 15)), np.zeros(3)
    for t, row in enumerate(slates):
        for slot in range(3):
            prefix = [item for item in row[:slot] if item >= 0]
            gains = np.array(
                [
                    PEOPLE[t].value([*prefix, a]) - PEOPLE[t].value(prefix) if a not in prefix else 0
                    for a in range(15)
                ]
            )
            totals[slot] += gains
            own[slot] += gains[row[slot]] if row[slot] >= 0 else 0
    expected = (totals.max(axis=1) - own) / 400
    np.testing.assert_allclose(expert_regrets(PEOPLE, slates), expected, atol=1e-12)
    functions = Functions([lambda s, t=t: PEOPLE[t].value(sorted(s)) for t in range(400)], 15)  # type: ignore[misc]
    np.testing.assert_allclose(expert_regrets(functions, slates), expected, atol=1e-12)


def test_expert_regrets_bound_the_regret_of_the_theorem() -> None:
    for seed in range(5):
        found = simulate(PEOPLE, slots=3, learners=["hedge", "random"], seeds=seed + 1)
        for result in found.results:
            exact = ONE_MINUS_1_OVER_E * found.benchmarks.optimum.lower - result.mean_payoff
            assert exact <= sum(max(0.0, regret) for regret in result.expert_regrets) + 1e-12


def test_the_file_format() -> None:
    found = json.loads(json.dumps(simulate(PEOPLE, slots=3, seeds=1).as_json(), allow_nan=False))
    assert set(found) >= {"stream", "benchmarks", "results", "note"}
    assert set(found["benchmarks"]) >= {"greedy", "optimum_lower", "optimum_upper", "random"}
    wanted = {
        "learner",
        "feedback",
        "epsilon",
        "delta",
        "seed",
        "rounds",
        "mean_payoff",
        "regret",
        "seconds",
        "guarantee",
    }
    for result in found["results"]:
        assert set(result) >= wanted
    assert "not private" in found["note"]


def test_an_interrupted_simulation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = run.run

    def counted(job: run.Job, *rest: object) -> run.Result:
        made.append(job.seed)
        if len(made) == 3:
            raise KeyboardInterrupt
        return real(job, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "run", counted)
    with pytest.raises(KeyboardInterrupt):
        simulate(PEOPLE, slots=3, learners=["hedge"], seeds=4, out=tmp_path)
    kept = tmp_path / "results.jsonl"
    kept.write_text(kept.read_text() + '{"job": "cut sho')  # and the last line was cut short
    resumed = simulate(PEOPLE, slots=3, learners=["hedge"], seeds=4, out=tmp_path)
    assert sorted(made) == [0, 1, 2, 2, 3]
    whole = simulate(PEOPLE, slots=3, learners=["hedge"], seeds=4)
    assert [r.mean_payoff for r in resumed.results] == [r.mean_payoff for r in whole.results]
    simulate(PEOPLE[:399], slots=3, learners=["hedge"], seeds=1, out=tmp_path)
    assert len(made) == 10, "another stream is another job"


def test_several_runs_at_once_change_nothing() -> None:
    one, two = (simulate(PEOPLE, slots=3, seeds=3, jobs=jobs) for jobs in (1, 2))
    assert [r.mean_payoff for r in one.results] == [r.mean_payoff for r in two.results]


def test_bad_requests_are_refused_before_any_work() -> None:
    with pytest.raises(DiminuendoError, match="no learner called 'privat'"):
        simulate(PEOPLE, slots=3, learners=["privat"])
    with pytest.raises(DiminuendoError, match="does not learn from bandit"):
        simulate(PEOPLE, slots=3, learners=["hedge"], feedback="bandit")
    with pytest.raises(InvalidInput, match="400 people"):
        simulate(PEOPLE, slots=3, rounds=401)
    with pytest.raises(InvalidInput, match="15 items"):
        simulate(PEOPLE, slots=16)
    with pytest.raises(InvalidInput, match="nobody"):
        simulate(PEOPLE[:0], slots=1)


def test_bandit_learners_run_and_explore() -> None:
    found = simulate(PEOPLE, slots=2, learners=["nonprivate", "random"], feedback="bandit", seeds=1)
    assert {result.feedback for result in found.results} == {"bandit"}


def test_pictures_and_tables(tmp_path: Path) -> None:
    found = simulate(PEOPLE, slots=3, seeds=2)
    assert plot_payoff(found, tmp_path / "deep" / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert as_table(found).row_count == 4


def test_the_interval_is_students() -> None:
    mean, half = mean_and_half_width([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(4.302653 / 3**0.5)
    assert np.isnan(mean_and_half_width([1.0])[1])


def test_kept_runs_belong_to_one_stream_only(tmp_path: Path) -> None:
    weights = np.tile([[0.5, 0.5, 0.0]], (50, 1))
    one = simulate(People(Coverage(np.eye(3)), weights), slots=1, learners=["random"], seeds=1, out=tmp_path)
    other = simulate(
        People(Coverage(np.zeros((3, 3))), weights), slots=1, learners=["random"], seeds=1, out=tmp_path
    )
    assert one.results[0].mean_payoff > 0
    assert other.results[0].mean_payoff == 0
    for worth in (0.2, 0.4):
        functions = Functions([lambda s, worth=worth: worth if s else 0.0] * 20, 3)  # type: ignore[misc]
        found = simulate(functions, slots=1, learners=["random"], seeds=1, out=tmp_path)
        assert found.results[0].mean_payoff == pytest.approx(worth)


def test_a_record_of_another_version_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('{"job": "abc", "result": {"unknown": 1}}\n')
    assert len(simulate(PEOPLE, slots=2, seeds=1, out=tmp_path).results) == 2


def test_nobody_wants_anything(tmp_path: Path) -> None:
    found = simulate(People(NoisyOr(), np.zeros((30, 4))), slots=2, seeds=1)
    assert found.benchmarks.greedy.value == 0
    assert plot_payoff(found, tmp_path / "plot.png").exists()
    assert as_table(found).row_count == 4


def test_senseless_requests() -> None:
    with pytest.raises(InvalidInput, match="at least one learner"):
        simulate(PEOPLE, slots=2, learners=[])
    with pytest.raises(InvalidInput, match="jobs"):
        simulate(PEOPLE, slots=2, jobs=0)
    with pytest.raises(InvalidInput, match="feedback"):
        simulate(PEOPLE, slots=2, feedback="gossip")  # type: ignore[arg-type]
    for wrong in ({"rounds": 0}, {"slots": 99}, {"epsilon": -1.0}, {"delta": 1.0}):
        with pytest.raises(InvalidInput):
            Setting(**{"n_items": 5, "slots": 2, "rounds": 9, "feedback": "full"} | wrong)  # type: ignore[arg-type]
