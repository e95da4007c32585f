"""Five programs more: a batch with one bad env, buffers that are shared, work after the return, a cache on disk, a daemon."""
import os, queue, sys, threading, time, zlib
import gymnasium, numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

BLOCK = bytes(range(256)) * 1000

class Cell(gymnasium.Env):
    """A walk of 120 steps."""
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)
    LENGTH = 120
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.x = 0, self.np_random.normal(size=4).astype(np.float32)
        return self.x.copy(), {}
    def step(self, a):
        self.t += 1
        self.x = (self.x * np.float32(0.97) + np.float32(int(a) - 1)).astype(np.float32)
        return self.x.copy(), float(self.x.sum()), False, self.t >= self.LENGTH, {}

class Field(VectorEnv):
    """Cells in a batch; with wrong=N, env 7 pays one too much after its Nth episode, and all others are right."""
    def __init__(self, num_envs=8, wrong=0):
        self.num_envs, self.wrong = num_envs, wrong
        self.cells = [Cell() for _ in range(num_envs)]
        self.single_observation_space, self.single_action_space = Cell.observation_space, Cell.action_space
        self.observation_space = batch_space(Cell.observation_space, num_envs)
        self.action_space = batch_space(Cell.action_space, num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.ended = 0
    def reset(self, *, seed=None, options=None):
        seeds = seed if isinstance(seed, (list, tuple)) else [None if seed is None else seed + i for i in range(self.num_envs)]
        self.ended = 0
        return np.stack([c.reset(seed=s)[0] for c, s in zip(self.cells, seeds)]), {}
    def step(self, actions):
        rows = []
        for i, (c, a) in enumerate(zip(self.cells, actions)):
            o, r, te, tr, _ = c.step(a)
            if i == 7 and self.wrong and self.ended >= self.wrong: r += 1
            if te or tr:
                o = c.reset()[0]
                if i == 7: self.ended += 1
            rows.append((o, r, te, tr))
        o, r, te, tr = zip(*rows)
        return np.stack(o), np.array(r), np.array(te), np.array(tr), {}

class Views(Field):
    """The same answers, always in the same arrays: each step overwrites what the last one returned."""
    def __init__(self, num_envs=8, wrong=0):
        super().__init__(num_envs, wrong)
        self.out = self.arrays(num_envs)
    def arrays(self, n):
        return np.zeros((n, 4), np.float32), np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
    def reset(self, **k):
        o, i = super().reset(**k)
        self.out[0][:] = o
        return self.out[0], i
    def step(self, actions):
        *new, i = super().step(actions)
        for old, value in zip(self.out, new): old[:] = value
        return (*(each[:] for each in self.out), i)

class OneBuffer(Views):
    """And all batches of this process share these arrays: another one's step overwrites them, too."""
    shared = {}
    def arrays(self, n):
        return self.shared.setdefault(n, super().arrays(n))

class Journal(Cell):
    """Sums up a journal in every step, before it returns."""
    def step(self, a):
        answer = super().step(a)
        zlib.crc32(BLOCK)
        return answer

class JournalLater(Cell):
    """Leaves the journal to a thread that works on after the return."""
    def __init__(self):
        self.todo = queue.SimpleQueue()
        threading.Thread(target=self.write, daemon=True).start()
    def write(self):
        while self.todo.get() is not None: zlib.crc32(BLOCK)
    def step(self, a):
        self.todo.put(1)
        return super().step(a)
    def close(self):
        self.todo.put(None)

class Level(Cell):
    """Each episode plays in a level that takes 5 ms to make; with cache=true, levels are kept on disk by seed."""
    LENGTH = 20
    def __init__(self, cache=False, folder="levels"):
        self.cache, self.folder = cache, folder
        self.first, self.n = 0, 0
    def make(self, name):
        v = zlib.crc32(name.encode())
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until: zlib.crc32(BLOCK)
        return v
    def level(self, name):
        if not self.cache: return self.make(name)
        path = os.path.join(self.folder, name)
        if os.path.exists(path): return int(open(path).read())
        v = self.make(name)
        os.makedirs(self.folder, exist_ok=True)
        with open(path, "w") as f: f.write(str(v))
        return v
    def reset(self, *, seed=None, options=None):
        if seed is not None: self.first, self.n = seed, 0
        o, i = super().reset(seed=seed)
        self.v = np.float32(self.level(f"{self.first}-{self.n}") % 97); self.n += 1
        self.x[0] = self.v
        return self.x.copy(), i

def work(seconds):
    """Rounds of a fixed piece of work that takes about so long on one core."""
    for _ in range(int(seconds * 4000)): zlib.crc32(BLOCK)

def daemonize(job):
    """The usual double fork: the daemon belongs to no session and no parent of this program."""
    if os.fork(): return
    os.setsid()
    if os.fork(): os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2): os.dup2(null, fd)
    job()
    os._exit(0)

if __name__ == "__main__":
    # python more.py here: the work is done before the end; python more.py daemon: a daemon does it after the end
    how = sys.argv[1]
    if how == "daemon": daemonize(lambda: work(1.0))
    else: work(1.0)
    print("steps 1000")
