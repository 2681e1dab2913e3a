# SPDX-License-Identifier: LGPL-2.1-or-later
"""The workloads and the search of the bench store, and its figures on disks of known times."""

import store_contention
import store_disks
import store_model
from store_disks import Scale, disks_in, folder, largest, model
from store_work import Zipf, even, overloaded, uniform
from tap import run, test

DISKS = 8


def per_disk(titles):
    return [sum(first == disk for _, first in titles) for disk in range(DISKS)]


def search(capacity, expected, most=None):
    """Returns what largest() finds for disks that give `capacity` streams, and the tries."""
    tried = []

    def trial(n):
        tried.append(n)
        return {'stoppages': int(n > capacity), 'n': n}

    return largest(trial, expected, most), tried


@test
def the_model_is_that_of_the_dissertation():
    assert int(model(Scale(1), 8, 6)) == 539
    assert int(model(Scale(1), 1, 1)) == 188
    assert int(model(Scale(10, 0.016, 446e6), 8, 6)) == 480
    assert int(model(Scale(1), 8, 6, 8 * Scale(1).access)) == 207  # striped over all of them
    assert int(model(Scale(10, rate=store_contention.RATES[4]), 4, 25)) == 65


@test
def scaled_time_gives_the_same_number():
    for megabits in store_model.RATES:
        assert abs(model(Scale(10), 4, megabits) - model(Scale(1), 4, megabits)) < 1e-6


@test
def the_search_finds_the_largest_number():
    for capacity in (1, 7, 19, 66, 539, 1504):
        for factor in (0.3, 0.97, 1, 1.3):
            (streams, result), tried = search(capacity, factor * capacity)
            assert result['n'] == streams <= capacity, (capacity, streams)
            assert capacity - streams <= max(1, 0.01 * capacity), (capacity, streams)
            assert len(tried) <= 25, tried


@test
def the_search_stops_at_its_limit():
    (streams, _), tried = search(1000, 90, most=100)
    assert streams == 100 and max(tried) == 100, (streams, tried)


@test
def disks_that_give_no_stream_are_told():
    (streams, result), _ = search(0, 20)
    assert streams == 0 and result is None


@test
def more_streams_than_the_model_allows_are_refused():
    result = {'read': 1, 'seconds': 1, 'cpu': 1, 'start': 1, 'late': 0}
    store_model.figures(Scale(10), 101, 100, result)
    try:
        store_model.figures(Scale(10), 105, 100, result)
    except AssertionError:
        return
    raise AssertionError('105 streams, where the model allows 100, were accepted')


@test
def titles_lie_evenly():
    assert per_disk(even('naive', DISKS, 80)) == [10] * 8
    assert per_disk(even('raid1', DISKS, 80)) == [20, 0] * 4


@test
def the_overloaded_disk_has_its_share():
    assert per_disk(overloaded('naive', DISKS, 880, 80)) == [180] + [100] * 7
    assert per_disk(overloaded('raid1', DISKS, 480, 80)) == [180, 0] + [100, 0] * 3


@test
def popular_titles_are_asked_for_more_often():
    streams = Zipf(1.0, Scale(10)).streams(5000)
    first, tenth = (sum(title == name for _, title in streams) for name in ('t0', 't9'))
    assert 550 < first < 790, first  # 13 % are due
    assert 40 < tenth < 95, tenth    # a tenth of that
    assert 450 < streams[-1][0] < 550, streams[-1]
    assert streams[:100] == Zipf(1.0, Scale(10)).streams(100)


@test
def the_worst_places_have_the_popular_titles_together():
    work = Zipf(1.0, Scale(10))
    worst, expected = (per_disk(work.titles(500, 'naive', DISKS, worst)) for worst in (True, False))
    assert worst[0] == max(worst) == len(
        {title for _, title in work.streams(500) if int(title[1:]) < 125}), worst
    assert max(expected) < 2 * min(expected), expected


@test
def every_block_comes_from_a_disk():
    scale = Scale(50)
    with folder() as path, disks_in(path, 2) as disks:
        filled = store_disks.Store(path, disks, scale, 'rda', 6, 8, even('rda', 2, 5))
        for disk in disks:
            disk.set(rate=0)
        result = filled.trial(uniform(5), 20, stop=False)
    assert result['playing'] == 5, result
    assert result['blocks'] > 5, result  # how many more depends on the time that the run gets
    assert result['bytes'] == result['blocks'] * filled.block, result
    assert result['hits'] == 0, result


@test
def a_block_that_comes_late_is_a_stoppage():
    with folder() as path, disks_in(path, 1) as (disk,):
        filled = store_disks.Store(path, [disk], Scale(50), 'naive', 6, 8, even('naive', 1, 1))
        disk.set(access_us=400000)  # four slices
        result = filled.trial(uniform(1), 20, stop=True)
    assert result['stoppages'] == 1, result
    assert result['longest'] >= 0.29, result
    assert result['start'] >= 0.4, result


@test
def streams_of_a_disk_that_fails_stop_once_each():
    scale = Scale(20)
    with folder() as path, disks_in(path, 2) as disks:
        filled = store_disks.Store(path, disks, scale, 'naive', 6, 30, even('naive', 2, 6))
        result = filled.trial(uniform(6), 20, stop=False,
                              fault=(5 * scale.slice, lambda: disks[0].set(error=100)))
    assert result['stopped'] == result['stoppages'] == 3, result


if __name__ == '__main__':
    run()
