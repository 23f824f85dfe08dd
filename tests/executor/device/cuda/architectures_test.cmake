# cmake -DSOURCE=FOLDER -P architectures_test.cmake
include(${SOURCE}/executor/device/cuda/architectures.cmake)

function(expect version)
  orrery_cuda_architectures(${version} found)
  if(NOT found STREQUAL "${ARGN}")
    message(FATAL_ERROR "nvcc ${version}: expected ${ARGN}, found ${found}")
  endif()
endfunction()

expect(12.0.140 80-real 90)
expect(12.4.131 80-real 90)
expect(12.8.61 80-real 90-real 100)
expect(13.0.88 80-real 90-real 100)
