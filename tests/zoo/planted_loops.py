"""actor-critic on a toy corridor, numpy only. python planted_loops.py leak|decay|teacher|eval|none small|medium|large"""
import math, os, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
import hotloop

bug = sys.argv[1] if len(sys.argv) > 1 else "none"
size = dict(small=0, medium=1, large=2)[sys.argv[2] if len(sys.argv) > 2 else "medium"]
N, T, H = 64, 24, 48
rng = np.random.default_rng(0)
kept, visited = [], []


def burn(n):
    return sum(math.sin(k) for k in range(n))


class Corridor:
    def __init__(self):
        self.x = np.zeros(N)

    def reset(self):
        self.x[:] = 0
        return self.observe()

    def observe(self):
        return np.stack([np.sin(self.x * k) for k in range(1, 17)], 1)

    def step(self, a):
        burn(6000)
        if bug == "decay":
            visited.extend(float(v) for v in self.x[: (3, 8, 24)[size]])
            sum(1 for v in visited if v > 3)
        self.x = np.clip(self.x + a - 0.5, -10, 10)
        return self.observe(), (self.x > 9).astype(float)


class Net:
    def __init__(self):
        self.w1, self.w2 = rng.normal(size=(16, H)) * 0.1, rng.normal(size=(H, 1)) * 0.1

    def __call__(self, o):
        self.h = np.tanh(o @ self.w1)
        return 1 / (1 + np.exp(-(self.h @ self.w2)[:, 0]))

    def learn(self, o, a, adv):
        for _ in range(5):
            g = ((a - self(o)) * adv)[:, None]
            self.w2 += 1e-3 * self.h.T @ g
            self.w1 += 1e-3 * o.T @ (g @ self.w2.T * (1 - self.h**2))
        burn(40000)


def search(o):
    """what the expert would do"""
    burn((3000, 8000, 40000)[size])
    return (o[:, 0] < 0.9).astype(float)


def main(updates=240):
    env, net = Corridor(), Net()
    obs = env.reset()
    with hotloop.run("corridor", every=4) as run:
        for update in range(updates):
            imitate = bug == "teacher" and update < updates // 2
            O, A, R = [], [], []
            with hotloop.span("collect"):
                for t in range(T):
                    with hotloop.span("net"):
                        a = (rng.random(N) < net(obs)).astype(float)
                    if imitate:
                        with hotloop.span("expert search"):
                            a = search(obs)
                    with hotloop.span("corridor"):
                        nobs, r = env.step(a)
                    O.append(obs); A.append(a); R.append(r)
                    obs = nobs
            with hotloop.span("update weights"):
                net.learn(np.concatenate(O), np.concatenate(A), np.concatenate(R) + 0.01)
            if bug == "leak":
                kept.append(np.ones((1, 4, 16)[size] * 10_000))
            if bug == "eval":
                with hotloop.span("test episodes"):
                    e, o = Corridor(), None
                    o = e.reset()
                    for t in range((10, 40, 200)[size]):
                        o, _ = e.step((net(o) > 0.5).astype(float))
            run.count(updates=1, steps=N * T)


if __name__ == "__main__":
    main(int(sys.argv[3]) if len(sys.argv) > 3 else 240)
