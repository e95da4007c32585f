import threading


def in_threads(count: int, work) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_have_trees_of_their_own_that_are_added_up(spans):
    marks = spans.Marks(("a", "b"))

    def work():
        for _ in range(100):
            with spans.span("outer"), spans.span("inner"):
                marks.start()
                marks.mark(0)
                marks.mark(1)

    with spans.span("main"):
        in_threads(4, work)
    assert spans.calls() == {
        "main": 1,
        "outer": 400,
        "outer/inner": 400,
        "outer/inner/a": 400,
        "outer/inner/b": 400,
    }
    spans.assert_adds_up()


def test_a_tree_read_while_threads_run_adds_up(spans):
    done = threading.Event()
    marks = spans.Marks(("a",))

    def work():
        while not done.is_set():
            with spans.span("outer"):
                marks.start()
                with spans.span("inner"):
                    pass
                marks.mark(0)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        spans.assert_adds_up()
    spans.disable()
    spans.assert_adds_up()
    done.set()
    for thread in threads:
        thread.join()
    spans.assert_adds_up()


def test_a_child_process_starts_with_an_empty_tree(spans, exit_code_of):
    def child():
        assert spans.enabled()
        assert spans.tree() == ()
        with spans.span("child"):
            pass
        assert spans.calls() == {"child": 1}

    with spans.span("parent"):
        assert exit_code_of(child) == 0
    assert spans.calls() == {"parent": 1}


def test_a_child_process_of_one_that_is_off_is_off(spans, exit_code_of):
    def child():
        assert not spans.enabled()
        assert spans.tree() == ()

    with spans.span("parent"):
        pass
    spans.disable()
    assert exit_code_of(child) == 0
    assert spans.calls() == {"parent": 1}
