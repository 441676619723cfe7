/* ---- Inner: arguments ---------------------------------------------------------------------------------------------- */

TILEC_INNER tilec_argument tilec_of_tensor(const tilec_tensor *tensor)
{
    tilec_argument made;
    memset(&made, 0, sizeof made);
    made.tensor = tensor;
    return made;
}

TILEC_INNER tilec_argument tilec_of_whole(tilec_wide number)
{
    tilec_argument made = tilec_of_tensor(NULL);
    made.value.kind = TILEC_WHOLE;
    made.value.whole = number;
    return made;
}

TILEC_INNER tilec_argument tilec_of_real(double number)
{
    tilec_argument made = tilec_of_tensor(NULL);
    made.value.kind = TILEC_REAL;
    made.value.real = number;
    return made;
}

TILEC_INNER tilec_argument tilec_of_truth(bool truth)
{
    tilec_argument made = tilec_of_tensor(NULL);
    made.value.kind = TILEC_TRUTH;
    made.value.whole = truth;
    return made;
}

