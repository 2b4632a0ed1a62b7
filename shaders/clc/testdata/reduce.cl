#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k_reduce(
    const __global int* g0_x_base, ulong g0_x_offset,
    __global int* g1_out_base, ulong g1_out_offset,
    uint a0_n)
{
    const __global int* g0_x = (const __global int*)((const __global char*)g0_x_base + g0_x_offset);
    __global int* g1_out = (__global int*)((__global char*)g1_out_base + g1_out_offset);
    __local int s0_tile[64];
    uint v0_n = a0_n;
    uint v1 = (uint)get_local_id(0);
    int v3_acc = 0;
    for (uint v6 = v1; v6 < v0_n; v6 += 64u) {
        int v7 = v3_acc;
        int v8 = g0_x[v6];
        int v9 = as_int(as_uint(v7) + as_uint(v8));
        v3_acc = v9;
    }
    int v11 = v3_acc;
    s0_tile[v1] = v11;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    int v15 = v1 < 32u;
    if (v15) {
        int v17 = s0_tile[v1];
        uint v19 = v1 + 32u;
        int v20 = s0_tile[v19];
        int v21 = as_int(as_uint(v17) + as_uint(v20));
        s0_tile[v1] = v21;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    int v25 = v1 < 16u;
    if (v25) {
        int v27 = s0_tile[v1];
        uint v29 = v1 + 16u;
        int v30 = s0_tile[v29];
        int v31 = as_int(as_uint(v27) + as_uint(v30));
        s0_tile[v1] = v31;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    int v35 = v1 == 0u;
    if (v35) {
        int v38 = s0_tile[v1];
        int v39 = atomic_add(g1_out + 0u, v38);
        int v41 = as_int(-as_uint(v39));
        int v42 = as_int(abs(v41));
        int v43 = atomic_cmpxchg(g1_out + 1u, v39, v42);
    } else {
        int v45 = v3_acc;
        int v47 = v45 / 3;
        int v48 = atomic_max(g1_out + 2u, v47);
    }
}
