"""Runs in eight threads, and in processes that are spawned."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

from asking import ask

if __name__ == "__main__":
    with ThreadPoolExecutor(8) as threads:
        answers = [each.result() for each in [threads.submit(ask) for _ in range(32)]]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        answers += [each.result() for each in [processes.submit(ask) for _ in range(4)]]
    print(*answers, sep="\n")
