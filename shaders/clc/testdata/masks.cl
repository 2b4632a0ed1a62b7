#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k_masks(
    __global float* g0_f_base, ulong g0_f_offset,
    const __global double* g1_d_base, ulong g1_d_offset,
    __global long* g2_l_base, ulong g2_l_offset,
    __global uchar* g3_u_base, ulong g3_u_offset)
{
    __global float* g0_f = (__global float*)((__global char*)g0_f_base + g0_f_offset);
    const __global double* g1_d = (const __global double*)((const __global char*)g1_d_base + g1_d_offset);
    __global long* g2_l = (__global long*)((__global char*)g2_l_base + g2_l_offset);
    __global uchar* g3_u = (__global uchar*)((__global char*)g3_u_base + g3_u_offset);
    float4 v1 = *(__global float4*)(g0_f + 0u);
    double4 v2 = *(const __global double4*)(g1_d + 0u);
    long4 v3 = *(__global long4*)(g2_l + 0u);
    uchar4 v4 = *(__global uchar4*)(g3_u + 0u);
    const float4 v5 = (float4)(0x1p+00f); // 1
    int4 v6 = v1 < v5;
    const double4 v7 = (double4)(0x1p+01); // 2
    int4 v8 = convert_int4(v2 >= v7);
    int4 v9 = ~v8;
    int4 v10 = v6 & v9;
    const long4 v11 = (long4)(3L);
    int4 v12 = convert_int4(v3 == v11);
    int4 v13 = convert_int4(v4 != (uchar)0);
    int4 v14 = v12 | v13;
    int4 v15 = v10 ^ v14;
    const int4 v16 = (int4)(-1);
    int4 v17_mask = v15 == v16;
    float4 v18 = convert_float4(-v17_mask);
    float4 v19 = select(v18, v1, v17_mask);
    *(__global float4*)(g0_f + 0u) = v19;
    long4 v21 = convert_long4(-v17_mask);
    long4 v22 = select(v21, v3, convert_long4(v17_mask));
    *(__global long4*)(g2_l + 0u) = v22;
    uchar4 v24 = convert_uchar4(-v17_mask);
    uchar4 v25 = select(v24, v4, convert_char4(v17_mask));
    *(__global uchar4*)(g3_u + 0u) = v25;
    int v27 = -v17_mask.s2;
    int v28 = !v27;
    int2 v31 = (int2)(-v28, -1);
    uchar2 v32 = convert_uchar2(-v31);
    *(__global uchar2*)(g3_u + 4u) = v32;
    int2 v35 = (int2)(-v28);
    int2 v36 = -v35;
    float2 v37 = convert_float2(v36);
    *(__global float2*)(g0_f + 4u) = v37;
}
