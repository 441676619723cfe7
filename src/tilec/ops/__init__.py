"""What each operation knows about itself: types, emission, meaning, layouts, code for threads."""
