# Sets SHOAL_NCCL_INCLUDE, the folder of NCCL's header, and SHOAL_NCCL_LIBRARY, its library.
# Programs load the library when they start to use several GPUs (nccl_library.h). Searches where
# CUDA is, in CMAKE_PREFIX_PATH and in the system. SHOAL_NCCL tells whether both were found. Without
# them the host sums the results of several GPUs.
find_path(SHOAL_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_file(SHOAL_NCCL_LIBRARY libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR}
  PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu PATHS /usr/lib/x86_64-linux-gnu)
set(SHOAL_NCCL OFF CACHE INTERNAL "")
if(SHOAL_NCCL_INCLUDE AND SHOAL_NCCL_LIBRARY)
  file(STRINGS "${SHOAL_NCCL_INCLUDE}/nccl.h" LINES REGEX "^#define NCCL_(MAJOR|MINOR) +[0-9]+")
  list(TRANSFORM LINES REPLACE "^#define NCCL_(MAJOR|MINOR) +" "")
  list(JOIN LINES "." SHOAL_NCCL_VERSION)
  # 2.14 added communicators that do not block and can be aborted while something runs.
  if(SHOAL_NCCL_VERSION VERSION_LESS 2.14 OR NOT SHOAL_NCCL_VERSION VERSION_LESS 3)
    message(STATUS "NCCL ${SHOAL_NCCL_VERSION} is not used: Shoal takes 2.14 or a later 2")
  else()
    set(SHOAL_NCCL ON CACHE INTERNAL "")
    message(STATUS "NCCL ${SHOAL_NCCL_VERSION}: ${SHOAL_NCCL_LIBRARY}")
  endif()
else()
  message(STATUS "NCCL was not found (`pip install nvidia-nccl-cu13`, -DCMAKE_PREFIX_PATH=.../nvidia/nccl): the host "
    "adds up the gradients of several GPUs")
endif()
