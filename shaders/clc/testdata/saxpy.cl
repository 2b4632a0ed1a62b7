// mul, add
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k_saxpy(
    const __global float* g0_x_base, ulong g0_x_offset,
    __global float* g1_y_base, ulong g1_y_offset,
    uint a0_n,
    float a1_alpha)
{
    const __global float* g0_x = (const __global float*)((const __global char*)g0_x_base + g0_x_offset);
    __global float* g1_y = (__global float*)((__global char*)g1_y_base + g1_y_offset);
    uint v0_n = a0_n;
    float v1_alpha = a1_alpha;
    uint v2 = (uint)get_group_id(0);
    uint v3 = (uint)get_group_id(1);
    uint v4 = (uint)get_num_groups(0);
    uint v5 = v3 * v4;
    uint v6 = v2 + v5;
    uint v8 = v6 * 64u;
    uint v9 = (uint)get_local_id(0);
    uint v10 = v8 + v9;
    uint v12_i = v10 * 4u;
    int v13 = v12_i < v0_n;
    if (v13) {
        float4 v15 = *(const __global float4*)(g0_x + v12_i);
        float4 v16 = *(__global float4*)(g1_y + v12_i);
        float4 v17 = (float4)(v1_alpha);
        float4 v18_axpy = fma(v15, v17, v16);
        *(__global float4*)(g1_y + v12_i) = v18_axpy;
    }
}
