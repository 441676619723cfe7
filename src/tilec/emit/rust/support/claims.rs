// ---- Inner: `requires!` and the grid of programs

fn too_large<T>(claim: &Claim, call: &Call<'_>) -> Result<T> {
    let values = where_text(call.kernel, claim, &call.values);
    failed(Status::Arithmetic, format!("`{}` is too large to compute{values}", claim.text))
}

impl Call<'_> {
    fn check_requires(&self) -> Result<()> {
        for claim in self.kernel.requirements {
            let mut e = Evaluation::default();
            let holds = (self.kernel.evaluate)(claim.expression, &self.values, &mut e);
            if holds == 0 || e.division_by_zero || e.overflow {
                let values = where_text(self.kernel, claim, &self.values);
                return failed(Status::Requires, format!("{} does not hold{values}", claim.text));
            }
        }
        Ok(())
    }

    fn take_grid(&mut self) -> Result<()> {
        self.programs = 1;
        let mut is_too_many = false;
        for (axis, claim) in self.kernel.grid.iter().enumerate() {
            let mut e = Evaluation::default();
            let extent = (self.kernel.evaluate)(claim.expression, &self.values, &mut e);
            if e.overflow {
                return too_large(claim, self);
            }
            if !(0..=COUNT_LIMIT).contains(&extent) {
                let limit = if extent > 0 { ", above the limit of 1099511627776" } else { "" };
                let values = where_text(self.kernel, claim, &self.values);
                let text = claim.text;
                return failed(Status::Grid, format!("grid extent {axis}, `{text}`, is {extent}{limit}{values}"));
            }
            self.extents[axis] = extent as i64;
        }
        let extents = &self.extents[..self.kernel.grid.len()];
        for &extent in extents {
            let product = self.programs.checked_mul(i128::from(extent));
            is_too_many |= product.is_none();
            self.programs = product.unwrap_or(0);
        }
        if extents.contains(&0) {
            self.programs = 0;
            is_too_many = false;
        }
        if is_too_many {
            let text = "the grid has more programs than the limit of 1099511627776";
            return failed(Status::Grid, String::from(text));
        }
        if self.programs > COUNT_LIMIT {
            let programs = self.programs;
            return failed(Status::Grid, format!("the grid has {programs} programs, above the limit of 1099511627776"));
        }
        Ok(())
    }
}
