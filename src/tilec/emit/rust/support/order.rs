// ---- Inner: the order of the launches of a pipeline

/// Numbers of steps, as bits.
#[derive(Clone)]
struct Row(Vec<u64>);

impl Row {
    fn new(count: usize) -> Row {
        Row(vec![0; count.div_ceil(64)])
    }

    fn has(&self, step: usize) -> bool {
        self.0[step / 64] >> (step % 64) & 1 != 0
    }

    fn put(&mut self, step: usize) {
        self.0[step / 64] |= 1 << (step % 64);
    }

    fn join(&mut self, other: &Row) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    fn leave_out(&mut self, other: &Row) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, less)| *word &= !less);
    }

    fn steps(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.0.len() * 64).filter(|&step| self.has(step))
    }
}

/// The order of the steps of a run: `before` are those that must be done before each, but for those that another of
/// them comes after; `all_before` with these.
struct Order {
    before: Vec<Row>,
    all_before: Vec<Row>,
}

impl Order {
    /// Through launches without programs.
    fn of(run: &Run) -> Order {
        let count = run.steps.len();
        let mut order = Order { before: Vec::new(), all_before: Vec::new() };
        let mut rows: Vec<Row> = Vec::with_capacity(run.step_of.len()); // by launch: the nearest steps before it
        for (launch, step) in run.pipeline.launches.iter().zip(&run.step_of) {
            let mut row = Row::new(count);
            for &one in launch.after {
                match run.step_of[one] {
                    Some(step) => row.put(step),
                    None => row.join(&rows[one]),
                }
            }
            if step.is_some() {
                let mut all = Row::new(count);
                row.steps().for_each(|one| all.join(&order.all_before[one]));
                row.leave_out(&all);
                all.join(&row);
                order.before.push(row.clone());
                order.all_before.push(all);
            }
            rows.push(row);
        }
        order
    }
}
