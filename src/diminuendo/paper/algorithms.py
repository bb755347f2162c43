r"""The paper's algorithms as it prints them: to be read with the paper in hand, not to be deployed.

Each function is one algorithm of Perez-Salazar & Cummings (2021), in the paper's letters. The pseudocode stands on the
right, beside the line of code that does it; `erratum n` is an entry of docs/errata.md. Experts, items, slots and rounds
are counted from 0 here and from 1 in the paper.

A stream `F` is any iterable of objectives. An objective f_t takes a set of items and returns a number in [0, 1], with
f_t(nothing) = 0. A function yields the slate of round t before it evaluates f_t: a tuple of items in the order of the
experts, and in a round that explores those before slot i, and a. Experts may repeat an item; the paper's S_t is the
set. Constants that are not given are as printed.

Missing on purpose: speed, argument checks, a ledger, a proved guarantee. The learners of `diminuendo.paper` have them,
under the same names, and play the same slates from the same random words; those of Algorithm 1 and of appendix B.2 draw
from the same law by other words (tests/paper/test_algorithms.py). Draws are exact: `Hedge.draw` is the exponential
mechanism on gains in fixed-point units of 2^-20.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from diminuendo._numba import as_kernel
from diminuendo.continuous.domains import Domain
from diminuendo.experts.hedge import Hedge
from diminuendo.randomness.exponential import select
from diminuendo.randomness.sources import RandomSource, SystemSource
from diminuendo.randomness.ticks import TICKS, to_ticks
from diminuendo.randomness.words import PublicSource, SecretRandomness
from diminuendo.sums.gamma_tree import GammaTree, node_scale
from diminuendo.types import Floats

Objective: TypeAlias = Callable[[Collection[int]], float]
"""f_t: the value of a set of items."""
Gradient: TypeAlias = Callable[[Floats], Floats]
Slate: TypeAlias = tuple[int, ...]

clipped = as_kernel(to_ticks)
"""A gain as a whole number of ticks, from 0 to TICKS."""

# The paper's lines stand in a column of their own, which the formatter would move.
# fmt: off


def randomness(rng: RandomSource | None) -> tuple[SecretRandomness, PublicSource]:
    """Return the secret words, on which privacy rests, and the public ones; the system's unless `rng` are given."""
    source = SystemSource() if rng is None else rng
    return SecretRandomness(source), PublicSource(source)


def uniform(n: int, public: PublicSource) -> int:
    """Draw a number below n, uniformly: as many bits as n - 1 has, drawn again while they make n or more."""
    mask = (1 << (n - 1).bit_length()) - 1
    while (number := int(public.take(1)[0]) & mask) >= n:
        pass
    return number


def bernoulli(p: float, public: PublicSource) -> bool:
    """Draw True with probability p, a multiple of 2^-53."""
    return uniform(1 << 53, public) < p * (1 << 53)


def index(law: Floats, public: PublicSource) -> int:
    """Draw a place of `law` with the probability that stands there."""
    point = (uniform(1 << 53, public) + 0.5) / (1 << 53)
    return min(int((np.cumsum(law) <= point).sum()), len(law) - 1)


def hedge(g: Iterable[Sequence[float]], N: int, eta: float, *, rng: RandomSource | None = None) -> Iterator[int]:
    """Algorithm 1, HEDGE: yield action i with probability in proportion to exp(eta * total gain of i).

    Weights are kept as logarithms: w_t(i) = exp(eta * G(i)), with G in ticks. Proposition 2 sets
    eta = epsilon / sqrt(32 T log(1/delta)) (erratum 6), as `paper.private_hedge` does.

    Parameters
    ----------
    g
        g_1, .., g_T: every action's gain in a round, in [0, 1].
    N
        Number of actions.
    eta
        Learning rate.
    rng
        Source of randomness; by default the operating system.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> list(hedge([[0, 1]] * 8, 2, eta=4.0, rng=SeededSource(1)))
    [1, 1, 1, 1, 1, 1, 1, 1]
    """
    secret, _ = randomness(rng)
    G = np.zeros(N, dtype=np.int64)                            # Initialize w_1 = (1, .., 1)
    for g_t in g:                                              # For t = 1, .., T
        i_t = select(G, eta / TICKS, secret)                   #   Sample i_t w.p. w_t(i) / sum w_t   (erratum 13)
        yield i_t                                              #   Obtain reward g_t(i_t), full access to g_t
        G += [clipped(gain) for gain in g_t]                   #   Update w_(t+1)(i) = w_t(i) e^(eta g_t(i))


def fi_dp(
    F: Iterable[Objective], N: int, k: int, T: int, epsilon: float, delta: float,
    *, eta: float | None = None, rng: RandomSource | None = None,
) -> Iterator[Slate]:
    """Algorithm 2, FI-DP: k ordered Hedge experts that learn marginal gains from full information.

    Theorem 5 claims (epsilon, delta); Theorem 6 needs a small epsilon (erratum 20).

    Parameters
    ----------
    F
        The objectives f_1, .., f_T.
    N, k, T
        Numbers of items (the paper's |U|), slots and rounds.
    epsilon, delta
        The privacy that is claimed.
    eta
        Learning rate; by default the printed one.
    rng
        Source of randomness; by default the operating system.

    Yields
    ------
    tuple of int
        (a_t^1, .., a_t^k).

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> objectives = [lambda S: float(1 in S)] * 6
    >>> list(fi_dp(objectives, 2, 1, 6, epsilon=300.0, delta=1e-6, rng=SeededSource(1)))
    [(1,), (1,), (1,), (1,), (1,), (1,)]
    """
    secret, _ = randomness(rng)
    if eta is None:
        eta = epsilon / (k * math.sqrt(32 * T * math.log(k / delta)))  # Set eta   (erratum 6)
    E = [Hedge(N, eta) for _ in range(k)]                      # Instantiate k copies E_1, .., E_k of Hedge, rate eta
    for f_t in F:                                              # For t = 1, .., T
        a_t = [E_i.draw(secret) for E_i in E]                  #   For each i, sample a_t^i given by E_i
        yield tuple(a_t)                                       #   Play S_t = union of the {a_t^i}, obtain f_t
        for i in range(k):                                     #   For each i = 1, .., k
            S = set(a_t[:i])                                   #     S_t^(i-1) = {a_t^1, .., a_t^(i-1)}
            g_t_i = [f_t(S | {a}) - f_t(S) for a in range(N)]  #     g_t^i(a) = f_t(S_t^(i-1) + a) - f_t(S_t^(i-1))
            E[i].learn(np.array(g_t_i))                        #     Feed back E_i with g_t^i


def fi_pure(
    F: Iterable[Objective], N: int, k: int, T: int, epsilon: float,
    *, H: float | None = None, rng: RandomSource | None = None,
) -> Iterator[Slate]:
    """Remark after Algorithm 2: FI-DP with the private experts of Thakurta and Smith in place of Hedge, delta = 0.

    Expert i follows the noisy leader over the simplex, and draws its item from the leader's point, which is public. The
    noise pays for all N gains (erratum 19), so nothing is learned in short runs. For what is not below, see `fi_dp`.

    Parameters
    ----------
    H
        Curvature of the leaders; by default the one in Theorem 10.
    """
    secret, public = randomness(rng)
    if H is None:
        H = math.sqrt(N * math.log(T) ** 2.5 / (epsilon / k * T))
    size = math.sqrt(N)                                        # N gains, each moved by at most 1   (erratum 19)
    E = [PFTAL(simplex, np.full(N, 1 / N), T, epsilon / k, size, H) for _ in range(k)]  # in place of Hedge
    for f_t in F:                                              # For t = 1, .., T
        a_t = [index(E_i.v, public) for E_i in E]              #   For each i, sample a_t^i given by E_i
        yield tuple(a_t)                                       #   Play S_t = union of the {a_t^i}, obtain f_t
        for i in range(k):                                     #   For each i = 1, .., k
            S = set(a_t[:i])                                   #     S_t^(i-1) = {a_t^1, .., a_t^(i-1)}
            g_t_i = [f_t(S | {a}) - f_t(S) for a in range(N)]  #     g_t^i(a) = f_t(S_t^(i-1) + a) - f_t(S_t^(i-1))
            E[i].learn(np.array(g_t_i), secret)                #     Feed back E_i with g_t^i


def streeter_golovin(
    F: Iterable[Objective], N: int, k: int, T: int, *, eta: float | None = None, rng: RandomSource | None = None
) -> Iterator[Slate]:
    """Streeter and Golovin's algorithm for full information: `fi_dp` at a rate that ignores privacy.

    Parameters
    ----------
    eta
        Learning rate; by default sqrt(k log N / T), which makes the bound least, and at most 1.
    """
    if eta is None:
        eta = min(1.0, math.sqrt(k * math.log(N) / T))
    return fi_dp(F, N, k, T, math.inf, 1.0, eta=eta, rng=rng)


def bandit_dp(
    F: Iterable[Objective], N: int, k: int, T: int, epsilon: float, delta: float,
    *, eta: float | None = None, gamma: float | None = None, b: Iterable[bool] | None = None,
    rng: RandomSource | None = None,
) -> Iterator[Slate]:
    """Algorithm 3, BANDITDP: learn from the value of the slate alone; draw new items after exploring rounds only.

    For what is not below, see `fi_dp`. Theorem 7 adds exp(-8 T^(1/3)) to delta (erratum 1). The learner does this with
    `calibration="paper"`, or with `resample="all", capped=False`; else it caps explorations, and only the expert that
    learned draws again.

    Parameters
    ----------
    F
        The objectives; each is evaluated at most once, at the set that is played.
    gamma
        Probability that a round explores; by default the printed one, held at 1 (erratum 2).
    b
        b_1, .., b_T: which rounds explore; by default tossed with probability gamma.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> objectives = [lambda S: float(1 in S)] * 99
    >>> slates = list(bandit_dp(objectives, 2, 1, 99, 1.0, 1e-6, eta=9.0, gamma=0.2, rng=SeededSource(1)))
    >>> slates[-50:].count((1,)) > 30
    True
    """
    secret, public = randomness(rng)
    if gamma is None:
        gamma = min(1.0, k * math.cbrt((16 * N * math.log(N)) ** 2 / T))            # Set gamma   (errata 2 and 3)
    if eta is None:
        eta = epsilon / (k * math.sqrt(32 * (2 * gamma * T) * math.log(k / delta)))   # Set eta   (errata 1 and 6)
    if b is None:
        b = (bernoulli(gamma, public) for _ in range(T))       # tossed when the loop asks for b_t
    E = [Hedge(N, eta) for _ in range(k)]                      # Instantiate k copies E_1, .., E_k of Hedge, rate eta
    S_t = [E_i.draw(secret) for E_i in E]                      # Utilize each E_i to sample a_1^i, set S_1
    for f_t, b_t in zip(F, b, strict=False):                   # For t = 1, .., T: sample b_t ~ Bernoulli(gamma)
        if b_t:                                                #   If b_t = 1:
            i, a = uniform(k, public), uniform(N, public)      #     Sample i in [k] u.a.r. and a in U u.a.r.
            played = (*S_t[:i], a)                             #     (S_t^(i-1) in order: erratum 9)
            yield played                                       #     Play S_t^(i-1) + a
            f_hat = np.zeros((k, N))
            f_hat[i, a] = f_t(set(played))                     #     Obtain value f_t(S_t)   (erratum 14)
            for j in range(k):                                 #     Feed back f_hat_t^i to E_i, for all i
                E[j].learn(f_hat[j])
            S_t = [E_i.draw(secret) for E_i in E]              #     Utilize E_i to pick a_(t+1)^i, update S_(t+1)
        else:                                                  #   Else:
            yield tuple(S_t)                                   #     Play S_t, obtain f_t(S_t); S_(t+1) = S_t


def presampled_bandit(
    F: Iterable[Objective], N: int, k: int, T: int, epsilon: float, delta: float,
    *, eta: float | None = None, gamma: float | None = None, rng: RandomSource | None = None,
) -> Iterator[Slate]:
    """Appendix B.2: Algorithm 3 with exploring rounds drawn beforehand, and a rate that knows their number.

    For what is not below, see `bandit_dp`. The printed bound on the regret does not follow (erratum 16).

    Parameters
    ----------
    gamma
        Probability that a round explores; by default that of Algorithm 3. B.2 says Theta(T^(-1/3)).
    """
    _, public = randomness(rng)
    if gamma is None:
        gamma = min(1.0, k * math.cbrt((16 * N * math.log(N)) ** 2 / T))  # that of Algorithm 3   (errata 2 and 3)
    b = [bernoulli(gamma, public) for _ in range(T)]           # For each t, select t w.p. gamma to explore
    M = sum(b)                                                 # Let M be the number of time-steps selected
    if eta is None:
        eta = epsilon / (k * math.sqrt(32 * (M + 1) * math.log(k / delta)))  # at most M + 1 draws   (errata 6, 16)
    return bandit_dp(F, N, k, T, epsilon, delta, eta=eta, gamma=gamma, b=b, rng=rng)  # Run Algorithm 3, forced


def streeter_golovin_bandit(
    F: Iterable[Objective], N: int, k: int, T: int,
    *, eta: float | None = None, gamma: float | None = None, rng: RandomSource | None = None,
) -> Iterator[Slate]:
    """Streeter and Golovin's algorithm for bandit feedback, as in section 4: new items in every round.

    For what is not below, see `bandit_dp`.

    Parameters
    ----------
    eta, gamma
        By default, gamma is k (N log N / T)^(1/3), at most 1/2, and eta is sqrt(k N log N / (gamma T)), at most 1.
    """
    secret, public = randomness(rng)
    if gamma is None:
        gamma = min(0.5, k * math.cbrt(N * math.log(N) / T))
    if eta is None:
        eta = min(1.0, math.sqrt(k * N * math.log(N) / (gamma * T)))
    E = [Hedge(N, eta) for _ in range(k)]
    for f_t in F:
        S_t = [E_i.draw(secret) for E_i in E]                  # the experts' sampled choice, in every round
        if bernoulli(gamma, public):                           # In explore rounds (prob. gamma):
            i, a = uniform(k, public), uniform(N, public)      #   select i in [k] and a in U uniformly at random
            played = (*S_t[:i], a)
            yield played                                       #   Play set S_t = S_t^(i-1) + a
            f_hat = np.zeros((k, N))
            f_hat[i, a] = f_t(set(played))                     #   observe feedback f_t(S_t^(i-1) + a)
            for j in range(k):                                 #   give this value to E_i, and 0 to the other experts
                E[j].learn(f_hat[j])
        else:                                                  # In exploit rounds (prob. 1 - gamma):
            yield tuple(S_t)                                   #   play S_t and feed back 0 to each E_i


def direct_bandit(
    F: Iterable[Objective], N: int, k: int, T: int, epsilon: float, delta: float,
    *, eta: float | None = None, gamma: float | None = None, rng: RandomSource | None = None,
) -> Iterator[Slate]:
    """Appendix B.1, the direct approach: `streeter_golovin_bandit` at the private rate of `fi_dp`.

    Parameters
    ----------
    gamma
        By default the one that makes gamma T + k^2 N log N / (gamma eta) least. B.1 says Theta(T^(-1/4)), and its
        arithmetic is off (erratum 11).
    """
    if eta is None:
        eta = epsilon / (k * math.sqrt(32 * T * math.log(k / delta)))   # that rate is enough   (erratum 6)
    if gamma is None:
        gamma = min(1.0, k * math.sqrt(N * math.log(N) / (eta * T)))
    return streeter_golovin_bandit(F, N, k, T, eta=eta, gamma=gamma, rng=rng)  # a new set at each time step


class PFTAL:
    """Private Follow the Approximate Leader (Thakurta & Smith, Theorem 10), made to maximise linear rewards <g, v>.

    After t rounds it plays project(G_t / (H t)), where G_t is the noisy sum of the g so far: the point that is best for
    G_t with H/2 |v|^2 taken off in every round. G_t comes from a binary tree of sums (`sums/gamma_tree.py`). Printed
    with Gaussian noise, which is never (epsilon, 0)-private; this noise has density in proportion to exp(-|b| / scale)
    (erratum 4). Real numbers only: floats are not.

    Parameters
    ----------
    project
        Returns the nearest point of the convex set.
    v
        The first point.
    T
        Number of rounds; no more than these may be fed back.
    epsilon
        What all points together cost, delta = 0.
    size
        By how much, in length, one user may change g. Not checked.
    H
        Curvature.
    """

    def __init__(
        self, project: Callable[[Floats], Floats], v: Floats, T: int, epsilon: float, size: float, H: float
    ) -> None:
        self.project, self.v, self.H, self.t = project, v, H, 0
        levels = T.bit_length()                                # the published sums that contain one g, at most
        self.G = GammaTree(1, len(v), T, node_scale(levels, size, epsilon))

    def learn(self, g: Floats, secret: SecretRandomness) -> None:
        """Add g to the sum, with noise, and move to the next point."""
        self.t += 1
        G_t = self.G.add(g[None], secret)[0]
        self.v = self.project(G_t / (self.H * self.t))


def simplex(z: Floats) -> Floats:
    """Return the nearest point of the probability simplex: max(0, z - level), with the level at which it adds up to 1.

    >>> simplex(np.array([0.9, 0.5, -1.0]))
    array([0.7, 0.3, 0. ])
    """
    falling = np.sort(z)[::-1]
    levels = (np.cumsum(falling) - 1) / np.arange(1, len(z) + 1)
    return np.asarray(np.maximum(0.0, z - levels[falling > levels][-1]))


def continuous(
    F: Iterable[Gradient], X: Domain, T: int, epsilon: float, *, L: float,
    K: int | None = None, H: float | None = None, rng: RandomSource | None = None,
) -> Iterator[Floats]:
    """Algorithm 4: K copies of PFTAL climb a continuous DR-submodular function together, delta = 0.

    The sum after the last round is never played. The learner does not count it: where T is a power of 2, it needs one
    level less, and draws less noise.

    Parameters
    ----------
    F
        The gradients of f_1, .., f_T, as functions of a point.
    X
        The domain, which contains 0 (erratum 8).
    T
        Number of rounds, at least 2.
    epsilon
        The privacy that Theorem 9 claims.
    L
        No gradient is longer, and none has a negative entry. Not checked: privacy rests on it.
    K
        Number of copies; by default the printed one, rounded, at least 1 (erratum 5).
    H
        Curvature of the leaders; by default the one in Theorem 10.
    rng
        Source of randomness; by default the operating system.

    Yields
    ------
    numpy.ndarray
        x_t, the point of round t.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> from diminuendo.continuous import CappedSimplex
    >>> slope = [lambda x: np.array([1.0, 0.5])] * 9
    >>> *_, last = continuous(slope, CappedSimplex(2, 1.0), 9, 1e6, L=1.2, K=2, rng=SeededSource(1))
    >>> last.round(3) + 0.0
    array([1., 0.])
    """
    secret, _ = randomness(rng)
    if K is None:
        K = max(1, round(math.sqrt(math.sqrt(T) / math.log(T) ** 2.5)))  # Let K   (erratum 5)
    if H is None:
        H = math.sqrt(X.n * math.log(T) ** 2.5 / (epsilon / K * T))
    size = math.sqrt(2) * L                                    # no two gradients are further apart
    project = lambda z: X.project(z[None])[0]  # noqa: E731
    E = [PFTAL(project, np.zeros(X.n), T, epsilon / K, size, H) for _ in range(K)]  # K copies, epsilon/K (errata 4, 8)
    for grad_f_t in F:                                         # For t = 1, .., T
        v_t = np.array([E_k.v for E_k in E])                   #   For k = 0, .., K-1: v_t^k is found using E_k
        x_t = v_t.sum(axis=0) / K                              #   Let x_t = 1/K sum of v_t^k over all k
        yield x_t                                              #   Play x_t, receive access to grad f_t
        for k in range(K):                                     #   Feed back each E_k
            x_t_k = v_t[:k].sum(axis=0) / K                    #     where x_t^k = 1/K sum_(i < k) v_t^i
            E[k].learn(grad_f_t(x_t_k), secret)                #     with l_k(v) = grad f_t(x_t^k) v   (erratum 22)


def meta_frank_wolfe(
    F: Iterable[Gradient], X: Domain, T: int, *, L: float, K: int | None = None, eta: float | None = None
) -> Iterator[Floats]:
    """Meta-Frank-Wolfe (Chen, Hassani & Karbasi 2018), on which Algorithm 4 builds: K open leaders climb together.

    Chen, Hassani and Karbasi leave the online linear maximiser open. Here it follows the regularised leader. Not
    private: the learner is `paper.meta_frank_wolfe` with `noise=None`. For what is not below, see `continuous`.

    Parameters
    ----------
    K
        Number of copies; by default sqrt(T), rounded up, with which both terms of Lemma 7 are of order sqrt(T).
    eta
        Rate of the leaders; by default D / (L sqrt(T)), where no point is further than D from the centre.
    """
    if K is None:
        K = math.ceil(math.sqrt(T))
    if eta is None:
        eta = X.spread / (L * math.sqrt(T))
    G = np.zeros((K, X.n))                                     # what each copy was fed, added up
    for grad_f_t in F:                                         # For t = 1, .., T
        v_t = X.project(X.centre + eta * G)                    #   v_t^k: where copy k would go
        yield v_t.sum(axis=0) / K                              #   Play x_t = 1/K sum of v_t^k over all k
        for k in range(K):                                     #   Feed back each copy
            x_t_k = v_t[:k].sum(axis=0) / K                    #     where x_t^k = 1/K sum_(i < k) v_t^i
            G[k] += grad_f_t(x_t_k)                            #     with the reward grad f_t(x_t^k) v


__all__ = [
    "PFTAL", "bandit_dp", "continuous", "direct_bandit", "fi_dp", "fi_pure", "hedge", "meta_frank_wolfe",
    "presampled_bandit", "streeter_golovin", "streeter_golovin_bandit",
]
