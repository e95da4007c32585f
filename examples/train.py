"""A training script in one file: policy gradient on CartPole that prints its steps per second."""

import argparse
import time

import gymnasium
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--total-timesteps", type=int, default=8_000)
parser.add_argument("--num-envs", type=int, default=4)
parser.add_argument("--num-steps", type=int, default=64)
parser.add_argument("--learning-rate", type=float, default=0.02)
args = parser.parse_args()

rng = np.random.default_rng(args.seed)
envs = gymnasium.make_vec("CartPole-v1", num_envs=args.num_envs)
weights = np.zeros((4, 2))
obs, _ = envs.reset(seed=args.seed)
global_step, start_time = 0, time.perf_counter()

while global_step < args.total_timesteps:
    rollout = []
    for _ in range(args.num_steps):
        logits = obs @ weights
        probs = np.exp(logits - logits.max(axis=1, keepdims=True))
        probs /= probs.sum(axis=1, keepdims=True)
        actions = (rng.random(args.num_envs) < probs[:, 1]).astype(np.int64)
        next_obs, rewards, terminations, truncations, _ = envs.step(actions)
        rollout.append((obs, actions, probs, rewards, terminations | truncations))
        obs = next_obs
        global_step += args.num_envs
    returns, gradient = np.zeros(args.num_envs), np.zeros_like(weights)
    for seen, actions, probs, rewards, dones in reversed(rollout):
        returns = rewards + 0.99 * returns * ~dones
        advantages = returns - returns.mean()
        chosen = np.eye(2)[actions]
        gradient += seen.T @ ((chosen - probs) * advantages[:, None])
    weights += args.learning_rate * gradient / args.num_steps
    print("SPS:", int(global_step / (time.perf_counter() - start_time)))
