// ---- Inner: which launch of a pipeline goes on which stream

/// Which step goes on which stream, and who waits for whom.
struct Lanes {
    /// By step: its stream, and those on other streams that it waits for.
    lane_of: Vec<usize>,
    waits: Vec<Row>,
    /// The steps that the first stream waits for in the end, and those that anybody waits for.
    joins: Row,
    awaited: Row,
    used: usize,
}

impl Lanes {
    fn of(order: &Order, count: usize) -> Lanes {
        let steps = order.before.len();
        let none = || Row::new(steps);
        let mut lanes = Lanes { lane_of: Vec::new(), waits: Vec::new(), joins: none(), awaited: none(), used: 0 };
        let mut last: Vec<Option<usize>> = vec![None; count]; // the last step of each stream
        let mut seen = vec![none(); count]; // by stream: what is done before what it is given next
        let mut seen_after: Vec<Row> = Vec::new(); // by step: what is done when it is
        for step in 0..steps {
            let lane = lane_for(order, &last, lanes.used, step);
            let waits = lanes.plan(&order.before[step], &mut seen[lane], &seen_after);
            seen[lane].put(step);
            seen_after.push(seen[lane].clone());
            lanes.waits.push(waits);
            lanes.lane_of.push(lane);
            lanes.used = lanes.used.max(lane + 1);
            last[lane] = Some(step);
        }
        let mut ends = none();
        last.iter().skip(1).flatten().for_each(|&step| ends.put(step));
        lanes.joins = lanes.plan(&ends, &mut seen[0], &seen_after);
        lanes
    }

    /// What a stream must wait for of a row: what it has not seen.
    fn plan(&mut self, row: &Row, seen: &mut Row, seen_after: &[Row]) -> Row {
        let mut waits = Row(vec![0; row.0.len()]);
        for one in row.steps().rev() {
            if !seen.has(one) {
                waits.put(one);
                self.awaited.put(one);
                seen.join(&seen_after[one]);
            }
        }
        waits
    }
}

/// The stream of a predecessor that no later step took, else one on which nothing is that the step need not come after,
/// else the one that was taken the longest ago.
fn lane_for(order: &Order, last: &[Option<usize>], used: usize, step: usize) -> usize {
    let follows = |lane: &usize, row: &Row| last[*lane].is_some_and(|one| row.has(one));
    if let Some(lane) = (0..used).find(|lane| follows(lane, &order.before[step])) {
        return lane;
    }
    let is_free = |lane: &usize| last[*lane].is_none() || follows(lane, &order.all_before[step]);
    let free = (0..last.len()).find(is_free);
    free.or_else(|| (0..last.len()).min_by_key(|&lane| last[lane])).unwrap_or(0)
}
