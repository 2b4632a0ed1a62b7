#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k_constants(
    __global float* g0_f_base, ulong g0_f_offset,
    __global double* g1_d_base, ulong g1_d_offset,
    __global long* g2_l_base, ulong g2_l_offset,
    __global int* g3_n_base, ulong g3_n_offset)
{
    __global float* g0_f = (__global float*)((__global char*)g0_f_base + g0_f_offset);
    __global double* g1_d = (__global double*)((__global char*)g1_d_base + g1_d_offset);
    __global long* g2_l = (__global long*)((__global char*)g2_l_base + g2_l_offset);
    __global int* g3_n = (__global int*)((__global char*)g3_n_base + g3_n_offset);
    const float v1 = 0x1.99999ap-04f; // 0.1
    g0_f[0u] = v1;
    const double v4 = 0x1.999999999999ap-04; // 0.1
    g1_d[0u] = v4;
    const float v7 = -0x1p+00f; // -1
    g0_f[1u] = v7;
    const double v10 = -0x1p+00; // -1
    g1_d[1u] = v10;
    const float v13 = -0x0p+00f; // -0
    g0_f[2u] = v13;
    const double v16 = -0x0p+00; // -0
    g1_d[2u] = v16;
    const float v19 = as_float(0x7f800000u); // +Inf
    g0_f[3u] = v19;
    const double v22 = as_double(0x7ff0000000000000ul); // +Inf
    g1_d[3u] = v22;
    const float v25 = as_float(0x7fc00000u); // NaN
    g0_f[4u] = v25;
    const double v28 = as_double(0x7ff8000000000001ul); // NaN
    g1_d[4u] = v28;
    const float v31 = 0x1p-149f; // 1e-45
    g0_f[5u] = v31;
    const double v34 = 0x1.6d601ad376ab9p-150; // 1e-45
    g1_d[5u] = v34;
    const float v37 = 0x1.fffffep+127f; // 3.4028235e+38
    g0_f[6u] = v37;
    const double v40 = 0x1.fffffep+127; // 3.4028234663852886e+38
    g1_d[6u] = v40;
    g2_l[0u] = as_long(0x8000000000000000ul);
    const long2 v46 = (long2)(-5L);
    *(__global long2*)(g2_l + 2u) = v46;
    g3_n[0u] = as_int(0x80000000u);
    g3_n[1u] = (-7);
}
