"""Plans of pipelines: what is wrong with them, in which order they launch, with which memory."""
