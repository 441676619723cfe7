// ---- Inner: what is known of how long a launch takes

impl Call<'_> {
    /// How long a launch of the fitted variant takes by the model of docs/abi.md ("Families"); none if it says nothing.
    fn cycles(&self) -> Option<i128> {
        let cost = &self.variant?.cost;
        let start = cost.parts.first()?;
        let mut e = Evaluation::default();
        let mut evaluated = |which| (self.kernel.evaluate)(which, &self.values, &mut e);
        let (mut busy, mut alone) = ([0i128; 4], 0i128);
        for part in cost.parts {
            let turns = evaluated(part.turns).max(0);
            for (sum, &cycles) in busy.iter_mut().zip(&part.busy) {
                *sum = sum.saturating_add(turns.saturating_mul(i128::from(cycles)));
            }
            alone = alone.saturating_add(turns.saturating_mul(i128::from(part.alone)));
        }
        let most = busy[0].max(busy[1]).max(busy[2].max(busy[3]));
        let mut sms = i128::from(self.sm_count);
        if cost.blocks_per_program > 2 || cost.cluster_blocks > 2 {
            sms -= sms / 16;
        }
        let at_once = i128::from(cost.blocks_per_sm);
        let blocks = self.programs * i128::from(cost.blocks_per_program);
        let per_sm = (blocks + sms - 1) / sms;
        let memory = evaluated(cost.memory);
        let first = evaluated(cost.first) / blocks.min(sms * at_once).max(1);
        let mut hidden = per_sm.saturating_mul(most).max(memory).max(first);
        if hidden != 0 {
            let longest = start.busy.iter().copied().max().unwrap_or(0);
            hidden = hidden.saturating_add(i128::from(start.alone - longest).max(0));
        }
        let rounds = (per_sm + at_once - 1) / at_once;
        Some(i128::from(cost.start).saturating_add(rounds.saturating_mul(alone).max(hidden)))
    }

    /// The number of the member that was measured as the fastest at the fitted extents on this card.
    fn measured(&self, group: &Group) -> Option<usize> {
        let dims = self.kernel.dims.len();
        let tables = group.tables.iter().filter(|table| table.card == self.card);
        let mut rows = tables.flat_map(|table| table.rows);
        let found = rows.find(|row| (0..dims).all(|dim| self.values[dim].whole == i128::from(row[dim])))?;
        Some(found[dims] as usize)
    }
}
