from test_on_threads import numbers
from lowered import program, ALIGNED
from simt_strands import LATE, EARLY, Timing
import ml_dtypes, numpy as np, pytest, time
TEXT="""#[kernel]
pub fn k<M: Dim, N: Dim, K: Dim>(
    z: Part<&mut Tensor<f32, M, N>, 128, 64>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
) {
    let mut sum = Tile::<f32, 128, 64>::zeros();
    for k in 0..K.div_ceil(64) {
        sum = dot(x.load::<128, 64>([z.id(0), k]), y.load::<64, 64>([k, z.id(1)]), sum);
    }
    z.store(sum);
}"""
@pytest.mark.parametrize("timing", [LATE, EARLY, Timing(seed=1), Timing(seed=2, split=True)], ids=str)
def test_matmul(timing):
    x, y = numbers(130, 200, dtype=ml_dtypes.bfloat16), numbers(200, 72, dtype=ml_dtypes.bfloat16)
    z = numbers(130, 72)
    with program(TEXT) as p:
        p.lowered("k", ALIGNED)
        t = time.time()
        p.run("k", {"x": x, "y": y, "z": z}, ALIGNED, timing=timing)
        print(time.time() - t)
    np.testing.assert_array_equal(z, x.astype(np.float32) @ y.astype(np.float32))
