"""What a new build of the same file means for those who call the old one."""
