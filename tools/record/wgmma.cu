// Chained wgmma e4m3 steps (m64n64k32, sm_90a) on given operands, one 64 x 64 tile a block.
//
// A and B are [tiles][64][128] bytes, K contiguous; C and D are [tiles][64][64]. The four K = 32 steps accumulate in the
// registers that start with C. Operands lie in shared memory without swizzle, as 8-row by 16-byte core matrices.
#include <cstdint>

constexpr int kRows = 64, kDepth = 128, kStep = 32, kCore = 128;

__device__ uint64_t descriptor(const uint8_t* start) {
    uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(start));
    uint64_t leading = kCore, stride = 2 * kCore;  // next core matrix along K, next group of eight rows
    return ((address & 0x3FFFF) >> 4) | ((leading >> 4) << 16) | ((stride >> 4) << 32);
}

__device__ void stage(const uint8_t* from, uint8_t* to) {
    for (int i = threadIdx.x; i < kRows * kDepth; i += blockDim.x) {
        int row = i / kDepth, k = i % kDepth, step = k / kStep, inner = k % kStep;
        to[step * kRows * kStep + ((row / 8) * 2 + inner / 16) * kCore + (row % 8) * 16 + inner % 16] = from[i];
    }
}

extern "C" __global__ void products_f32(const uint8_t* a, const uint8_t* b, const uint32_t* c, uint32_t* d) {
    __shared__ alignas(128) uint8_t sa[kRows * kDepth], sb[kRows * kDepth];
    stage(a + blockIdx.x * kRows * kDepth, sa);
    stage(b + blockIdx.x * kRows * kDepth, sb);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t r[32];
    auto place = [&](int i) {
        int row = warp * 16 + lane / 4 + 8 * ((i / 2) % 2), column = (i / 4) * 8 + (lane % 4) * 2 + i % 2;
        return static_cast<size_t>(blockIdx.x) * kRows * kRows + row * kRows + column;
    };
    for (int i = 0; i < 32; ++i) r[i] = c[place(i)];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int step = 0; step < kDepth / kStep; ++step) {
        uint64_t da = descriptor(sa + step * kRows * kStep), db = descriptor(sb + step * kRows * kStep);
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]),
              "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14]), "+r"(r[15]),
              "+r"(r[16]), "+r"(r[17]), "+r"(r[18]), "+r"(r[19]), "+r"(r[20]), "+r"(r[21]), "+r"(r[22]), "+r"(r[23]),
              "+r"(r[24]), "+r"(r[25]), "+r"(r[26]), "+r"(r[27]), "+r"(r[28]), "+r"(r[29]), "+r"(r[30]), "+r"(r[31])
            : "l"(da), "l"(db));
    }
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 32; ++i) d[place(i)] = r[i];
}

extern "C" __global__ void products_f16(const uint8_t* a, const uint8_t* b, const uint16_t* c, uint16_t* d) {
    __shared__ alignas(128) uint8_t sa[kRows * kDepth], sb[kRows * kDepth];
    stage(a + blockIdx.x * kRows * kDepth, sa);
    stage(b + blockIdx.x * kRows * kDepth, sb);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t r[16];
    auto place = [&](int i) {  // two neighbouring columns a register
        int row = warp * 16 + lane / 4 + 8 * (i % 2), column = (i / 2) * 8 + (lane % 4) * 2;
        return static_cast<size_t>(blockIdx.x) * kRows * kRows + row * kRows + column;
    };
    for (int i = 0; i < 16; ++i) r[i] = c[place(i)] | static_cast<uint32_t>(c[place(i) + 1]) << 16;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int step = 0; step < kDepth / kStep; ++step) {
        uint64_t da = descriptor(sa + step * kRows * kStep), db = descriptor(sb + step * kRows * kStep);
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k32.f16.e4m3.e4m3 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]),
              "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14]), "+r"(r[15])
            : "l"(da), "l"(db));
    }
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 16; ++i) {
        d[place(i)] = static_cast<uint16_t>(r[i]);
        d[place(i) + 1] = static_cast<uint16_t>(r[i] >> 16);
    }
}
