#pragma once
// Marks functions that kernels may call: those that the host may call, too, and those of one side.

#ifdef __CUDACC__
#define ORRERY_ANYWHERE __host__ __device__
#define ORRERY_IN_KERNELS __device__
#else
#define ORRERY_ANYWHERE
#define ORRERY_IN_KERNELS
#endif
