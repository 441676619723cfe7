"""The IR as data: IRDL definitions of our dialects."""
