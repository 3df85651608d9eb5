# Sets SHOAL_MIN_ARCHITECTURE to the lowest of CMAKE_CUDA_ARCHITECTURES. Requires that all of them
# are plain numbers: only code for these also runs on later architectures, as FindDevice tells
# people (runtime/device_survey.cc). Code for 90a runs only on 9.0, code for 90-real on 9.x, and the
# meaning of `native` or `all` is unknown here.
foreach(ARCHITECTURE IN ITEMS ${CMAKE_CUDA_ARCHITECTURES})
  if(NOT ARCHITECTURE MATCHES "^[1-9][0-9]+$")
    message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES is \"${CMAKE_CUDA_ARCHITECTURES}\", and \"${ARCHITECTURE}\" is no plain "
      "number. Give numbers of compute capabilities alone, 90 for 9.0 and later:\n"
      "  cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=\"80;90\"")
  endif()
endforeach()
set(SHOAL_MIN_ARCHITECTURE ${CMAKE_CUDA_ARCHITECTURES})
list(SORT SHOAL_MIN_ARCHITECTURE COMPARE NATURAL)
list(GET SHOAL_MIN_ARCHITECTURE 0 SHOAL_MIN_ARCHITECTURE)
message(STATUS "CUDA code for compute capability ${SHOAL_MIN_ARCHITECTURE} and later")
