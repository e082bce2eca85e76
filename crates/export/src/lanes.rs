//! Where spans that overlap are drawn.
//!
//! On one track of a Perfetto trace an end closes whatever began last. So a track may hold two spans only if one ends
//! before the other begins or lies inside it. [`Lanes`] gives each span the first track on which that holds.
//!
//! Begins and ends at one moment are taken in the order in which they stand in the file, where a span's end follows its begin at once.
//! So of two spans that begin together the later written one must not be around the other: it gets another lane.

use std::collections::VecDeque;

/// Spans that a lane remembers: any later span is compared with them only. What began before the oldest of them ended gets
/// another lane.
const REMEMBERED: usize = 1024;

/// Tracks side by side.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    /// Outermost spans, without overlap, in order.
    spans: VecDeque<(u64, u64)>,
    /// Nothing may begin before this.
    floor: u64,
}

impl Lanes {
    /// The lane of a span, which is written now.
    #[inline]
    pub(crate) fn place(&mut self, begin: u64, end: u64) -> usize {
        for (position, lane) in self.lanes.iter_mut().enumerate() {
            if lane.take(begin, end) {
                return position;
            }
        }
        let mut lane = Lane::default();
        let taken = lane.take(begin, end);
        debug_assert!(taken, "an empty lane takes any span");
        self.lanes.push(lane);
        self.lanes.len() - 1
    }
}

impl Lane {
    #[inline]
    fn take(&mut self, begin: u64, end: u64) -> bool {
        if begin < self.floor {
            return false;
        }
        // Usually the span comes after all others, or around the last few of them.
        let mut inside = self.spans.len();
        while inside > 0 && self.spans[inside - 1].0 > begin {
            inside -= 1;
        }
        if inside > 0 && self.spans[inside - 1].1 > begin {
            return false;
        }
        // Those from `inside` on begin later: they must end within, or begin after the end.
        let mut after = inside;
        while after < self.spans.len() && self.spans[after].0 < end {
            if self.spans[after].1 > end {
                return false;
            }
            after += 1;
        }
        // The file has the other's begin first.
        if self.spans.get(after).is_some_and(|next| next.0 == end) {
            return false;
        }
        if after == self.spans.len() {
            self.spans.truncate(inside);
            self.spans.push_back((begin, end));
        } else {
            self.spans.drain(inside..after);
            self.spans.insert(inside, (begin, end));
        }
        if self.spans.len() > REMEMBERED
            && let Some((_, end)) = self.spans.pop_front()
        {
            self.floor = end;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a reader makes of a track: the ends that its begins get, by their order in the file.
    fn read(spans: &[(u64, u64)]) -> Vec<u64> {
        let mut marks: Vec<(u64, Option<usize>)> = spans
            .iter()
            .enumerate()
            .flat_map(|(i, (begin, end))| [(*begin, Some(i)), (*end, None)])
            .collect();
        marks.sort_by_key(|(time, _)| *time);
        let mut ends = vec![u64::MAX; spans.len()];
        let mut stack = Vec::new();
        for (time, mark) in marks {
            match mark {
                Some(span) => stack.push(span),
                None => ends[stack.pop().expect("an end without a begin")] = time,
            }
        }
        ends
    }

    fn check(spans: &[(u64, u64)]) -> usize {
        let mut lanes = Lanes::default();
        let mut tracks: Vec<Vec<(u64, u64)>> = Vec::new();
        for (begin, end) in spans {
            let lane = lanes.place(*begin, *end);
            tracks.resize(tracks.len().max(lane + 1), Vec::new());
            tracks[lane].push((*begin, *end));
        }
        for track in &tracks {
            let ends: Vec<u64> = track.iter().map(|(_, end)| *end).collect();
            assert_eq!(read(track), ends, "{track:?}");
        }
        tracks.len()
    }

    #[test]
    fn x03_overlapping_spans_keep_their_lengths() {
        assert_eq!(check(&[(60, 70), (0, 100), (50, 150)]), 2);
    }

    #[test]
    fn calls_in_calls_share_a_lane() {
        assert_eq!(check(&[(2, 3), (4, 5), (1, 6), (7, 8), (0, 9), (9, 10)]), 1);
    }

    #[test]
    fn moments_that_coincide_do_not_swap_ends() {
        assert_eq!(check(&[(10, 20), (20, 30), (30, 30), (30, 40)]), 1);
        assert_eq!(check(&[(10, 20), (10, 30)]), 2);
        assert_eq!(check(&[(15, 30), (10, 30)]), 1);
        check(&[(10, 10), (10, 10), (5, 10), (10, 12)]);
    }

    #[test]
    fn a_lane_forgets_and_stays_right() {
        let spans: Vec<(u64, u64)> = (0..5000).map(|i| (10 * i, 10 * i + 5)).collect();
        assert_eq!(check(&spans), 1);
        let mut late = spans;
        late.push((7, 8));
        late.push((0, 60_000));
        assert_eq!(check(&late), 2, "what is forgotten can't be compared with");
    }

    proptest! {
        #[test]
        fn any_spans_in_any_order_keep_their_ends(
            spans in prop::collection::vec((0u64..60, 0u64..20), 0..80),
            ordered in any::<bool>(),
        ) {
            let mut spans: Vec<(u64, u64)> = spans.into_iter().map(|(b, l)| (b, b + l)).collect();
            if ordered {
                spans.sort_by_key(|(_, end)| *end);
            }
            check(&spans);
        }
    }
}
