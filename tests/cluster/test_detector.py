"""The phi-accrual detector against its derived vectors, and its rates of false alarm under known laws."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from emuml.cluster.detector import PhiAccrual, Verdict, phi_of

PRESETS = {"lan": PhiAccrual.lan, "wan": PhiAccrual.wan}


def beating(detector: PhiAccrual, gaps_s: list[float], start_s: float = 0.0) -> float:
    """Feed one beat and then one after each gap; return the time of the last."""
    now = start_s
    detector.heard(now)
    for gap_s in gaps_s:
        now += gap_s
        detector.heard(now)
    return now


@pytest.mark.parametrize(
    ("deviations", "phi"),
    [(0, 0.3010), (1, 0.7995), (2, 1.6430), (3, 2.8697), (4, 4.4993), (5, 6.5426), (5.6120, 8.0), (8, 15.2061),
     (20, 88.5601)],
)  # fmt: skip
def test_phi_is_that_of_the_exact_normal_tail(deviations: float, phi: float) -> None:
    assert phi_of(deviations) == pytest.approx(phi, abs=5e-5)


def test_phi_beyond_the_underflow_of_erfc_is_finite() -> None:
    assert phi_of(40) == pytest.approx(349.44, abs=5e-3)
    assert math.isfinite(phi_of(1e6))
    # The two forms meet where one takes over from the other.
    assert phi_of(math.nextafter(30, 0)) == pytest.approx(phi_of(30), abs=1e-5)


@given(st.floats(-30, 1e5), st.floats(0, 100))
def test_phi_never_falls_with_the_length_of_the_silence(deviations: float, more: float) -> None:
    assert phi_of(deviations + more) >= phi_of(deviations) - 1e-5


@pytest.mark.parametrize(
    ("preset", "interval_s", "suspect_s", "dead_s"), [("lan", 0.5, 0.809, 2.061), ("wan", 1.0, 1.773, 6.403)]
)
def test_regular_beats_give_the_documented_times(
    preset: str, interval_s: float, suspect_s: float, dead_s: float
) -> None:
    detector = PRESETS[preset]()
    last_s = beating(detector, [interval_s] * 120)
    assert detector.suspect_at - last_s == pytest.approx(suspect_s, abs=5e-4)
    assert detector.dead_at - last_s == pytest.approx(dead_s, abs=5e-4)
    assert detector.verdict(last_s + suspect_s - 0.001) is Verdict.ALIVE
    assert detector.verdict(last_s + suspect_s + 0.001) is Verdict.SUSPECT
    assert detector.verdict(last_s + dead_s - 0.001) is Verdict.SUSPECT
    assert detector.verdict(last_s + dead_s + 0.001) is Verdict.DEAD
    assert detector.phi(detector.suspect_at) == pytest.approx(3.0, abs=1e-3)


def test_with_fewer_than_two_samples_a_quarter_of_the_interval_stands_for_the_deviation() -> None:
    for gaps_s in ([], [0.3]):
        detector = PhiAccrual.lan()
        last_s = beating(detector, gaps_s)
        assert detector.suspect_at - last_s == pytest.approx(0.5 + 3.0902 * 0.125)
        assert detector.dead_at - last_s == pytest.approx(0.5 + 1.0 + 5.6120 * 0.125)
    fine = PhiAccrual(interval_s=0.2, std_min_s=0.1, pause_s=0, floor_s=0, ceiling_s=9)
    beating(fine, [])
    assert fine.suspect_at == pytest.approx(0.2 + 3.0902 * 0.1)


def test_nobody_is_judged_before_the_first_sign_of_life() -> None:
    detector = PhiAccrual.lan()
    detector.resumed(5.0)
    assert detector.verdict(1e9) is Verdict.ALIVE
    assert detector.next_change(1e9) == math.inf
    assert detector.phi(1e9) == 0.0


def test_mean_and_deviation_are_those_of_the_window() -> None:
    gaps_s = list(np.random.default_rng(3).uniform(0.3, 1.2, 250))
    detector = PhiAccrual(interval_s=0.5, std_min_s=0.001, pause_s=0.0, floor_s=0.0, ceiling_s=50.0)
    last_s = beating(detector, gaps_s, start_s=1e6)
    window = np.array(gaps_s[-100:])
    assert detector.suspect_at - last_s == pytest.approx(window.mean() + 3.0902 * window.std(), abs=1e-7)
    assert detector.dead_at - last_s == pytest.approx(window.mean() + 5.6120 * window.std(), abs=1e-7)


def test_a_mean_below_the_interval_counts_as_the_interval() -> None:
    detector = PhiAccrual(interval_s=0.5, std_min_s=0.01, pause_s=0.0, floor_s=0.0, ceiling_s=50.0)
    last_s = beating(detector, [0.3] * 50)
    assert detector.suspect_at - last_s == pytest.approx(0.5 + 3.0902 * 0.01)


def test_a_busy_link_keeps_the_peer_alive_and_is_no_flood_of_samples() -> None:
    busy, calm = PhiAccrual.lan(), PhiAccrual.lan()
    last_s = beating(busy, [1 / 64] * 6400)
    assert last_s == beating(calm, [0.25] * 400)
    assert busy.suspect_at == calm.suspect_at == pytest.approx(last_s + 0.80902)


def test_a_close_arrival_moves_the_last_sign_of_life() -> None:
    detector = PhiAccrual.lan()
    last_s = beating(detector, [0.5] * 10)
    before = detector.dead_at
    detector.heard(last_s + 0.125)
    assert detector.dead_at == pytest.approx(before + 0.125)
    # And the next sample counts from the last sample, not from the arrival between.
    detector.heard(last_s + 0.5)
    assert detector.dead_at == pytest.approx(before + 0.5)


def test_floor_and_ceiling_bound_the_silence() -> None:
    wide = PhiAccrual.lan()
    last_s = beating(wide, [0.5, 20.0, 0.5, 20.0])
    assert wide.suspect_at == wide.dead_at == last_s + 3.0
    assert wide.verdict(last_s + 2.999) is Verdict.ALIVE
    assert wide.verdict(last_s + 3.0) is Verdict.DEAD
    patient = PhiAccrual(interval_s=0.1, std_min_s=0.01, pause_s=0.0, floor_s=2.0, ceiling_s=3.0)
    last_s = beating(patient, [0.1] * 10)
    assert patient.dead_at == last_s + 2.0


def test_next_change_walks_through_the_verdicts() -> None:
    detector = PhiAccrual.lan()
    now = beating(detector, [0.5] * 10)
    seen = []
    while now < math.inf:
        seen.append(detector.verdict(now))
        now = detector.next_change(now)
    assert seen == [Verdict.ALIVE, Verdict.SUSPECT, Verdict.DEAD]


def test_an_own_stall_is_not_held_against_the_peer() -> None:
    stalled, untroubled = PhiAccrual.lan(), PhiAccrual.lan()
    last_s = beating(stalled, [0.5] * 10)
    beating(untroubled, [0.5] * 10)
    stalled.resumed(60.0)
    assert stalled.verdict(last_s + 60.4) is Verdict.ALIVE
    stalled.heard(last_s + 60.5)
    untroubled.heard(last_s + 0.5)
    assert stalled.dead_at == pytest.approx(untroubled.dead_at + 60.0)


@pytest.mark.parametrize(
    "change",
    [{"interval_s": 0.0}, {"std_min_s": 0.0}, {"pause_s": -1.0}, {"floor_s": math.nan}, {"ceiling_s": math.inf},
     {"ceiling_s": 0.5}, {"window": 1}],
)  # fmt: skip
def test_settings_without_meaning_are_refused(change: dict[str, float]) -> None:
    good = {"interval_s": 0.5, "std_min_s": 0.1, "pause_s": 1.0, "floor_s": 1.0, "ceiling_s": 3.0}
    with pytest.raises(ValueError, match=next(iter(change))):
        PhiAccrual(**{**good, **change})  # type: ignore[arg-type]


Law = Callable[[np.random.Generator, int], NDArray[np.float64]]
LAWS: dict[str, tuple[Law, float, float, float, float]] = {
    # law: gaps, suspects per beat, deaths per beat, mean suspect_at and dead_at after the last sign of life
    "constant": (lambda rng, n: np.full(n, 0.5), 0, 0, 0.81, 2.06),
    "normal 0.05": (lambda rng, n: rng.normal(0.5, 0.05, n), 0, 0, 0.81, 2.06),
    "exponential 0.01": (lambda rng, n: rng.exponential(0.01, n), 0, 0, 0.81, 2.06),
    "normal 0.1": (lambda rng, n: rng.normal(0.5, 0.1, n), 6.2e-4, 0, 0.821, 2.079),
    "normal 0.2": (lambda rng, n: rng.normal(0.5, 0.2, n), 1.8e-3, 0, 1.094, 2.534),
    "exponential 0.5": (lambda rng, n: rng.exponential(0.5, n), 1.19e-2, 2.56e-3, 2.274, 3.0),
    "late 1 %": (lambda rng, n: 0.5 + rng.uniform(0, 2, n) * (rng.random(n) < 0.01), 7.9e-3, 1.5e-3, 0.902, 2.221),
}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_rates_of_false_alarm(law: str) -> None:
    """Rates per beat and mean times after 200 beats of warm-up, within 4 standard deviations."""
    gaps_of, suspects, deaths, suspect_s, dead_s = LAWS[law]
    n_beats, warm_up = 40_000, 200
    gaps_s = np.maximum(gaps_of(np.random.default_rng(11), n_beats + warm_up), 0.0)
    detector = PhiAccrual.lan()
    verdicts, suspects_s, deaths_s = [], [], []
    now = beating(detector, gaps_s[:warm_up].tolist())
    for gap_s in gaps_s[warm_up:].tolist():
        suspects_s.append(detector.suspect_at - now)
        deaths_s.append(detector.dead_at - now)
        now += gap_s
        verdicts.append(detector.verdict(now))
        detector.heard(now)
    n_dead = verdicts.count(Verdict.DEAD)
    n_suspect = verdicts.count(Verdict.SUSPECT) + n_dead
    # The expected rates come from 4e5 beats themselves, hence the 1.1.
    assert abs(n_suspect - n_beats * suspects) <= 4 * math.sqrt(1.1 * n_beats * suspects)
    assert abs(n_dead - n_beats * deaths) <= 4 * math.sqrt(1.1 * n_beats * deaths)
    # Windows overlap: about one independent estimate in 100 beats. Rounding of the table: half its last digit.
    for times_s, expected_s in ((suspects_s, suspect_s), (deaths_s, dead_s)):
        rounding_s = 5.1e-3 if expected_s in (0.81, 2.06) else 5.1e-4
        assert np.mean(times_s) == pytest.approx(expected_s, abs=rounding_s + 4 * float(np.std(times_s)) / 20)
