"""The random numbers of an episode: one PCG32 stream, drawn from in the order of the rules."""

from hotloop.core.exact.random import Pcg32
from hotloop.worlds.prospector.numbers import (
    COMMODITIES,
    SMALLEST,
    TWO_PI,
    F,
    Number,
    Real,
    cos,
    exp,
    log,
    sqrt,
    total,
)


class Stream(Pcg32):
    """PCG32 with the distributions of this world; each says how many numbers it draws."""

    __slots__ = ()

    def unit(self) -> Number:
        """One draw: 0 to 1."""
        return F(self.next() / 2.0**32)

    def uniform(self, low: float, high: float) -> Number:
        """One draw."""
        return F(low) + (F(high) - F(low)) * self.unit()

    def between(self, low: int, high: int) -> int:
        """One draw: a whole number from low to high - 1."""
        return low + self.next() % (high - low)

    def exponential(self) -> Number:
        """One draw."""
        return -log(max(self.unit(), SMALLEST))

    def normal(self, mean: Real, deviation: Real) -> Number:
        """Two draws."""
        u1, u2 = self.unit(), self.unit()
        return F(mean) + F(deviation) * sqrt(-2 * log(max(u1, SMALLEST))) * cos(TWO_PI * u2)

    def lognormal(self, mean: float, deviation: float) -> Number:
        """Two draws."""
        return exp(self.normal(mean, deviation))

    def beta32(self) -> Number:
        """Five draws: the beta distribution of 3 and 2."""
        first = total([self.exponential() for _ in range(3)])
        second = total([self.exponential() for _ in range(2)])
        return first / (first + second)

    def dirichlet(self) -> list[Number]:
        """Six draws: shares of the commodities."""
        parts = [self.exponential() for _ in range(COMMODITIES)]
        whole = total(parts)
        return [part / whole for part in parts]
