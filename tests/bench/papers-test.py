# SPDX-License-Identifier: LGPL-2.1-or-later
"""The papers' experiments: their pages agree with their results, and a busy machine is no measure."""

import contextlib
import pathlib
import tempfile

import amps_functions
import bench
import broadcast_server
import group_losses
import papers
import quiet
import report
import svc_more
from tap import Skip, run, test

MACHINE = {'cpu': 'test', 'cores': 2, 'virtual': False, 'memory_gb': 1, 'kernel': '1'}
FACTS = {'commit': 'abc', 'quick': True, 'machine': MACHINE, 'rig': 'veth'}


class Bench:
    NAME, TITLE, CASE, WHO, YARDSTICK, LOG = 'shared', 'A title', 'readers', 'way', None, False
    COLUMNS = report.Column('cpu', 'CPU %', '{:.1f}'), report.Column('ns', 'ns/packet')


def samples(cpu):
    found = report.Samples()
    for case in '10', '100':
        for way in 'one way', 'another way':
            found.add(case, way, {'cpu': cpu})
    return found


@contextlib.contextmanager
def results_in_a_folder():
    before = papers.RESULTS
    with tempfile.TemporaryDirectory() as folder:
        papers.RESULTS = pathlib.Path(folder)
        try:
            yield papers.RESULTS
        finally:
            papers.RESULTS = before


def raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError(f'no {kind.__name__}')


@test
def each_figure_has_a_bench_that_exists_or_says_that_it_is_not_repeated():
    parts = bench.parts_of(bench.all_benches())
    for paper in papers.papers():
        assert paper.figures, paper.name
        for figure in paper.figures:
            assert figure.bench is None or len(parts[figure.bench]) == 1, figure
            assert figure.paper and figure.shows, figure


@test
def the_pages_agree_with_the_results():
    for path, text in papers.written():
        assert path.read_text(encoding='utf-8') == text, f'{path} is out of date: run ./dev docs'


@test
def a_figure_takes_its_numbers_from_the_results():
    with results_in_a_folder() as folder:
        assert papers.keep(Bench, samples(7.25), FACTS)
        figure = papers.Figure('Figure 1', 'CPU time', 'shared', 'a lot.', (
            '{1000; one way; cpu; .0f} %.', '{10; one way; cpu; .1f} % at 10, {100; another way; cpu; .0f} at 100.'))
        text = papers.section_of(figure)
        assert '- Here: 7.2 % at 10, 7 at 100.\n' in text, text
        assert 'quick run' in text and 'busy' not in text, text
        assert '![shared](papers/shared.svg)' in text or not (folder / 'shared.svg').exists()
        none = papers.Figure('Figure 1', 'CPU time', 'shared', 'a lot.', '{5; one way; cpu; .0f} %.')
        assert 'fewer cases' in papers.section_of(none)


@test
def a_table_of_a_page_is_made_from_the_results():
    page = 'before\n<!-- begin: results of shared, 100 -->\nold\n<!-- end -->\nafter\n'
    with results_in_a_folder():
        raises(AssertionError, papers.with_tables, page)
        papers.keep(Bench, samples(3), FACTS)
        text = papers.with_tables(page)
    lines = text.splitlines()
    assert lines[2:6] == ['| readers | way | CPU % |', '| --- | --- | --- |', '| 100 | one way | 3.0 |',
                          '| 100 | another way | 3.0 |'], text
    assert 'old' not in text and lines[0] == 'before' and lines[-1] == 'after', text


@test
def a_busy_machines_results_are_marked_and_replace_no_others():
    figure = papers.Figure('Figure 1', 'CPU time', 'shared', 'a lot.', '{10; one way; cpu; .0f} %.')
    with results_in_a_folder():
        assert papers.keep(Bench, samples(50), {**FACTS, 'busy': 1.5})
        text = ' '.join(papers.section_of(figure).split())
        assert '**on a busy machine**: other programs took 1.5 processors' in text, text
        assert papers.keep(Bench, samples(9), {**FACTS, 'busy': 0.1})
        assert not papers.keep(Bench, samples(50), {**FACTS, 'busy': 1.5})
        text = papers.section_of(figure)
        assert 'Here: 9 %.' in text and 'busy' not in text, text


@test
def other_programs_time_is_all_time_without_this_ones():
    with tempfile.NamedTemporaryFile('w+', encoding='ascii') as stat:
        def machine(user, nice, system, steal):
            stat.seek(0)
            stat.write(f'cpu  {user} {nice} {system} 90 0 700 800 {steal} 0 0\ncpu0 1 2\n')
            stat.flush()

        own, now = 10, 0
        machine(1000, 0, 1000, 0)
        watches = [quiet.Watch(niced, stat.name, lambda: own, lambda: now) for niced in (True, False)]
        machine(1500, 300, 1400, 100)  # 13 s of 100 ticks, 3 of them of programs that give way
        own, now = 17, 4
        found = [watch.others() for watch in watches]
        assert found == [(13 - 7) / 4, (10 - 7) / 4], found


@test
def a_bench_refuses_a_busy_machine_and_begins_on_a_quiet_one():
    loads = []

    class Look:
        def __init__(self, niced):
            assert not niced

        def others(self):
            return loads.pop(0)

    loads += [1.7] * 3
    why = raises(Skip, quiet.wait, 6, Look, lambda _seconds: None)
    assert why.startswith('the machine is busy: other programs take 1.7 of its'), why
    loads += [1.7, 0.1]
    quiet.wait(6, Look, lambda _seconds: None)
    assert not loads


@test
def a_quick_run_leaves_out_what_would_begin_too_late():
    limits = papers.Run(True, 100)
    why = raises(Skip, limits.begin, 'shared', 100 + 40 * 60 + 1)
    assert why == '40 minutes are over; run ./dev bench --quick papers shared', why


@test
def a_quick_run_begins_with_what_has_no_results_of_a_quiet_machine():
    with results_in_a_folder():
        for name, busy in ('quiet', 0.1), ('busy', 1.5):
            class Named(Bench):
                NAME = name

            assert papers.keep(Named, samples(1), {**FACTS, 'busy': busy})
        assert papers.by_need(['quiet', 'none', 'busy', 'other']) == ['none', 'other', 'busy', 'quiet']


@test
def a_function_belongs_to_the_folder_of_its_source_or_to_a_group_of_the_kernel():
    where = {'weir_ingest_run': 'ingest', 'get': 'config', 'weir_window_add': 'window'}
    parts = amps_functions.parts_of(
        '    30.00%    90  [kernel.kallsyms]  [k] udp_sendmsg\n'
        '    10.00%    30  [kernel.kallsyms]  [k] _copy_from_iter\n'
        '     5.00%    15  [kernel.kallsyms]  [k] something_new\n'
        '    20.00%    60  libgstweir.so      [.] weir_ingest_run.isra.0\n'
        '    15.00%    45  libgstweir.so      [.] weir_window_add\n'
        '     5.00%    15  rtsp-proxy         [.] get\n'
        '    10.00%    30  libc.so.6          [.] __memmove_avx_unaligned\n'
        '     5.00%    15  libglib-2.0.so.0   [.] g_hash_table_lookup\n', where)
    assert parts == {
        'kernel: network': 90, 'kernel: copies': 30, 'kernel: other': 15, 'the proxy: receiving': 60,
        'the proxy: pipes (the window)': 45, 'the proxy: other': 15, 'the proxy: copies': 30,
        'GStreamer and GLib': 15}, parts


@test
def a_request_waits_until_a_thread_reads_it_and_is_answered_by_its_process():
    probe = 'tcp:tcp_probe: family=AF_INET src={}:8554 dest=10.78.0.2:35404 mark=0 data_len=117'
    waited, worked = broadcast_server.request_times(
        f' 90/91 10.000000:  {probe.format("10.78.0.1")}\n'
        f' 90/92 10.000100:  {probe.format("10.78.0.1")}\n'
        f' 90/92 10.000150:  {probe.format("10.77.0.1")}\n'  # of another machine
        ' 70/71 10.000500: syscalls:sys_exit_recvfrom: 0x75\n'
        ' 80/81 10.000600: syscalls:sys_exit_recvfrom: 0x75\n'  # another process
        ' 70/75 10.000700: syscalls:sys_enter_sendmsg: fd: 0x1, msg: 0x7f, flags: 0x4040\n'  # reads nothing
        ' 70/71 10.001100: syscalls:sys_exit_recvfrom: 0x75\n'
        ' 70/71 10.002500: syscalls:sys_enter_sendmsg: fd: 0x1, msg: 0x7f, flags: 0x4040\n'
        ' 70/71 10.004100: syscalls:sys_enter_sendmsg: fd: 0x2, msg: 0x7f, flags: 0x4040\n', 70, '10.78.0.1')
    assert [round(ms, 3) for ms in waited] == [0.5, 1], waited
    assert [round(ms, 3) for ms in worked] == [2, 3], worked


@test
def packets_of_a_segment_are_lost_between_two_of_one_transmission():
    counter = group_losses.Counter()
    for number in 65534, 65535, 1, 2, 4, 65534, 65535, 0:
        counter.add(number)
    assert (counter.came, counter.lost) == (8, 2), vars(counter)
    text = ('a=x-weir-channel:5 group=239.78.1.2 port=5004 ttl=4\r\n'
            'a=x-weir-channel:7 group=239.78.1.1 port=5006 ttl=4\r\n'
            'a=x-weir-send:7 start=1.000 period=2 repeat=* frames=30-89 packets=500-900\r\n'
            'a=x-weir-send:5 start=0.500 period=1 repeat=* frames=0-29 packets=0-499\r\n')
    assert group_losses.segments_of(text) == [('239.78.1.2', 5004), ('239.78.1.1', 5006)]


@test
def the_rates_of_spatial_layers_are_the_sums_of_their_temporal_layers():
    text = ''.join(f'{ms} {spatial}.{temporal} {1000 * (spatial + 1)} 8000\n'
                   for ms in (233, 433) for spatial in range(2) for temporal in range(3))
    assert list(svc_more.Rates.points(text)) == [
        ('0.4', 'spatial 0', {'rate': 120, 'average': 24}), ('0.4', 'spatial 1', {'rate': 240, 'average': 24}),
        ('0.4', 'all', {'rate': 360, 'average': 48})]


@test
def lines_are_drawn_over_numbers():
    class Lines(Bench):
        LINES = True

    commands, plots = report._lines(samples(4), ['one way', 'another way'], 'cpu')
    assert commands == ['set xrange [0:*]', '$data0 << END', '10 4', '100 4', 'END',
                        '$data1 << END', '10 4', '100 4', 'END'], commands
    assert plots.count('linespoints') == 2, plots
    with results_in_a_folder() as folder:
        assert papers.keep(Lines, samples(4), FACTS)
        assert not report.shutil.which('gnuplot') or (folder / 'shared.svg').stat().st_size > 1000


if __name__ == '__main__':
    run()
