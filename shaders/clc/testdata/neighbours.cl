#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k_neighbours(
    const __global float* g0_x_base, ulong g0_x_offset,
    const __global half* g1_h_base, ulong g1_h_offset,
    __global float* g2_y_base, ulong g2_y_offset)
{
    const __global float* g0_x = (const __global float*)((const __global char*)g0_x_base + g0_x_offset);
    const __global half* g1_h = (const __global half*)((const __global char*)g1_h_base + g1_h_offset);
    __global float* g2_y = (__global float*)((__global char*)g2_y_base + g2_y_offset);
    uint v0 = (uint)get_group_id(0);
    uint v1 = (uint)get_group_id(1);
    uint v2 = (uint)get_num_groups(0);
    uint v3 = v1 * v2;
    uint v4 = v0 + v3;
    uint v6 = v4 * 64u;
    uint v7 = (uint)get_local_id(0);
    uint v8_i = v6 + v7;
    uint v10 = v8_i + 3u;
    float4 v23 = vload4(0, g0_x + v10);
    uint v25 = v8_i + 1u;
    float v26 = vload_half(v25, g1_h);
    uint v28 = v8_i + 2u;
    float v29 = vload_half(v28, g1_h);
    uint v31 = v8_i + 3u;
    float v32 = vload_half(v31, g1_h);
    uint v34 = v8_i + 4u;
    float v35 = vload_half(v34, g1_h);
    float4 v36 = (float4)(v26, v29, v32, v35);
    float4 v37 = v23 + v36;
    uint v39 = v8_i + 0u;
    float v40 = g0_x[v39];
    uint v42 = v8_i + 1u;
    float v43 = g0_x[v42];
    uint v45 = v8_i + 3u;
    float v46 = g0_x[v45];
    uint v48 = v8_i + 2u;
    float v49 = g0_x[v48];
    float4 v50 = (float4)(v40, v43, v46, v49);
    float4 v51 = v37 + v50;
    uint v53 = v8_i + 0u;
    float v54 = g2_y[v53];
    uint v56 = v8_i + 1u;
    float v57 = g2_y[v56];
    uint v59 = v8_i + 2u;
    float v60 = g2_y[v59];
    uint v62 = v8_i + 3u;
    float v63 = g2_y[v62];
    float4 v64 = (float4)(v54, v57, v60, v63);
    float4 v65 = v51 + v64;
    uint v67 = v8_i + 0u;
    vstore4(v65, 0, g2_y + v67);
    uint v83 = v8_i + 4u;
    float v84 = v65.s0;
    g2_y[v83] = v84;
    uint v87 = v8_i + 5u;
    float v88 = v65.s1;
    g2_y[v87] = v88;
    uint v91 = v8_i + 6u;
    uint v93 = v8_i + 5u;
    float v94 = g2_y[v93];
    g2_y[v91] = v94;
    uint v97 = v8_i + 6u;
    float v98 = v65.s2;
    g2_y[v97] = v98;
    uint v101 = v8_i + 7u;
    float v102 = v65.s3;
    g2_y[v101] = v102;
}
