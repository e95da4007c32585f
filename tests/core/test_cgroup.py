import pytest

from hotloop.core.machine import container_limits


def make(root, files: dict[str, str]):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_nothing_limits_a_machine_without_control_groups(tmp_path):
    assert container_limits(tmp_path) == {"cpus": None, "memory_bytes": None}


def test_version_two_limits_are_read(tmp_path):
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/memory.max": "1073741824\n",
    }
    assert container_limits(make(tmp_path, files)) == {"cpus": 0.5, "memory_bytes": 1 << 30}


def test_the_tightest_group_on_the_way_up_counts(tmp_path):
    files = {
        "proc/self/cgroup": "0::/pod/box\n",
        "sys/fs/cgroup/cpu.max": "max 100000\n",
        "sys/fs/cgroup/pod/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/pod/box/cpu.max": "400000 100000\n",
        "sys/fs/cgroup/pod/box/memory.max": "max\n",
    }
    assert container_limits(make(tmp_path, files)) == {"cpus": 2.0, "memory_bytes": None}


@pytest.mark.parametrize("path", ["/", "/docker/0123"])
def test_version_one_limits_are_read_even_where_the_path_is_the_hosts(tmp_path, path):
    files = {
        "proc/self/cgroup": f"4:memory:{path}\n2:cpu,cpuacct:{path}\n1:name=systemd:/\n0::/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n",
    }
    assert container_limits(make(tmp_path, files)) == {"cpus": 3.0, "memory_bytes": 4096}


def test_version_one_says_no_limit_in_numbers(tmp_path):
    files = {
        "proc/self/cgroup": "4:memory:/\n1:cpu:/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    assert container_limits(make(tmp_path, files)) == {"cpus": None, "memory_bytes": None}
