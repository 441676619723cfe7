// ---- Inner: one instance

impl Call<'_> {
    /// Finds the variant to launch: the first that takes shapes and strides, and the addresses too if `addresses` says
    /// so. None if there is none.
    fn take_variant(&mut self, addresses: bool) -> Result<()> {
        self.variant = None;
        self.grid = [0; 3];
        for variant in self.kernel.variants {
            if !self.fits(variant) || (addresses && !self.is_aligned(variant)) {
                continue;
            }
            if self.programs > 0 {
                if variant.persistent != 0 {
                    self.need_machine()?;
                }
                match self.grid_of(variant) {
                    Some(grid) => self.grid = grid,
                    None => continue,
                }
            }
            self.variant = Some(variant);
            return Ok(());
        }
        Ok(())
    }

    /// Everything of an instance's contract but what addresses decide.
    fn fit(&mut self, kernel: &'static Kernel) -> Result<()> {
        self.kernel = kernel;
        for (parameter, tensor) in self.tensors() {
            check_type(parameter, tensor)?;
        }
        for (parameter, tensor) in self.tensors() {
            check_form(parameter, tensor)?;
        }
        self.take_device()?;
        self.take_scalars()?;
        self.bind_dims()?;
        self.check_requires()?;
        self.take_grid()
    }

    fn is_of_types(&self, kernel: &Kernel) -> bool {
        let both = kernel.parameters.iter().zip(self.arguments);
        both.into_iter().all(|(p, given)| given.tensor.is_none_or(|tensor| check_type(p, tensor).is_ok()))
    }
}
