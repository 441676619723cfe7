"""Integer reasoning: polynomials over unknowns, formulas of them, and whether formulas can hold."""
