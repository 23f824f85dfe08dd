# orrery_cuda_architectures(VERSION RESULT): the GPUs that kernels are compiled for by an nvcc of that
# version: Ampere, Hopper and, where it knows it, Blackwell; what comes later from the newest's PTX.
# Source  CUDA 12.8 release notes: support for compute capability 10.0 is new in 12.8
function(orrery_cuda_architectures version result)
  if(version VERSION_LESS 12.8)
    set(${result} 80-real 90 PARENT_SCOPE)
  else()
    set(${result} 80-real 90-real 100 PARENT_SCOPE)
  endif()
endfunction()
