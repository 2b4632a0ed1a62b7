#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k_half_arith(
    const __global half* g0_x_base, ulong g0_x_offset,
    __global half* g1_y_base, ulong g1_y_offset)
{
    const __global half* g0_x = (const __global half*)((const __global char*)g0_x_base + g0_x_offset);
    __global half* g1_y = (__global half*)((__global char*)g1_y_base + g1_y_offset);
    half4 v1 = *(const __global half4*)(g0_x + 0u);
    const half4 v2 = (half4)(as_half((ushort)0x3800)); // 0.5
    int4 v3 = convert_int4(v1 < v2);
    half4 v4 = convert_half4(exp(convert_float4(v1)));
    const half4 v5 = (half4)(as_half((ushort)0xc000)); // -2
    half4 v6 = v1 * v5;
    half4 v7 = select(v6, v4, convert_short4(v3));
    *(__global half4*)(g1_y + 0u) = v7;
    half v11 = v7.s1;
    int v12 = (int)v11;
    half v13 = (half)v12;
    g1_y[4u] = v13;
}
