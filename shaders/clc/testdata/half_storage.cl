#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k_half_storage(
    const __global half* g0_x_base, ulong g0_x_offset,
    __global half* g1_y_base, ulong g1_y_offset)
{
    const __global half* g0_x = (const __global half*)((const __global char*)g0_x_base + g0_x_offset);
    __global half* g1_y = (__global half*)((__global char*)g1_y_base + g1_y_offset);
    __local ushort s0_tile[64] __attribute__((aligned(16)));
    ushort p0_reg[8] __attribute__((aligned(16)));
    uint v0 = (uint)get_local_id(0);
    float v1 = vload_half(v0, g0_x);
    vstore_half_rte(v1, v0, (__local half*)s0_tile);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    float8 v5 = vloada_half8(0, (__local half*)s0_tile + 8u);
    vstorea_half8_rte(v5, 0, (__private half*)p0_reg + 0u);
    float v9 = vload_half(3u, (__private half*)p0_reg);
    vstore_half_rte(v9, v0, g1_y);
    vstorea_half8_rte(v5, 0, g1_y + 64u);
}
