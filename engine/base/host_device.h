// SPDX-License-Identifier: Apache-2.0
// HALLMARK_HOST_DEVICE: marks a function that host and device code share, so that both run one
// definition and give one result.
#ifndef HALLMARK_ENGINE_BASE_HOST_DEVICE_H_
#define HALLMARK_ENGINE_BASE_HOST_DEVICE_H_

#ifdef __CUDACC__
#define HALLMARK_HOST_DEVICE __host__ __device__
#else
#define HALLMARK_HOST_DEVICE
#endif

#endif  // HALLMARK_ENGINE_BASE_HOST_DEVICE_H_
