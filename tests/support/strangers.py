"""Envs of other packages that need a line or two to be made."""

from typing import Any


def open_spiel() -> Any:
    """A game of OpenSpiel through shimmy, as PettingZoo has turns."""
    import pyspiel
    from shimmy.openspiel_compatibility import OpenSpielCompatibilityV0

    return OpenSpielCompatibilityV0(env=pyspiel.load_game("kuhn_poker"), render_mode=None)


def mesa(agents: int = 10) -> Any:
    """A model of Mesa's: it has `step()` and nothing else that we know."""
    from mesa import Agent, Model

    class Person(Agent):
        wealth = 1

        def give(self) -> None:
            other = self.random.choice(list(self.model.agents))
            if self.wealth:
                other.wealth += 1
                self.wealth -= 1

    class Economy(Model):
        def __init__(self) -> None:
            super().__init__(seed=7)
            Person.create_agents(self, agents)

        def step(self) -> None:
            self.agents.shuffle_do("give")
            self.running = self.steps < 50

    return Economy()


def envpool(num: int = 4) -> Any:
    import envpool

    return envpool.make("CartPole-v1", env_type="gymnasium", num_envs=num)


def torchrl(num: int = 1) -> Any:
    from torchrl.envs import GymEnv, SerialEnv

    return GymEnv("CartPole-v1") if num == 1 else SerialEnv(num, lambda: GymEnv("CartPole-v1"))


def sb3(num: int = 2) -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env("CartPole-v1", n_envs=num)


def dm_control() -> Any:
    from dm_control import suite

    return suite.load("cartpole", "swingup")


def jumanji() -> Any:
    """An env of JAX's, which compiles in its first step."""
    import jumanji
    from jumanji.wrappers import JumanjiToDMEnvWrapper

    return JumanjiToDMEnvWrapper(jumanji.make("Snake-v1"))


def magent2() -> Any:
    """Two armies of a C++ engine, as PettingZoo has agents that act at once."""
    from magent2.environments import battle_v4

    return battle_v4.parallel_env(map_size=16, max_cycles=20)


def anytrading(window: int = 10) -> Any:
    """A market of the past."""
    import gymnasium
    from gym_anytrading.datasets import STOCKS_GOOGL

    bounds = (window, 10 * window)
    return gymnasium.make("stocks-v0", df=STOCKS_GOOGL, window_size=window, frame_bound=bounds)
