# Sets SHOAL_CUDNN_INCLUDE, the folder of cuDNN's headers, and SHOAL_CUDNN_LIBRARY, its library.
# Programs load the library when they start to use a GPU (cudnn_library.h). Searches where CUDA is,
# in CMAKE_PREFIX_PATH and in the system.
find_path(SHOAL_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_file(SHOAL_CUDNN_LIBRARY libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR}
  PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu PATHS /usr/lib/x86_64-linux-gnu)
set(SHOAL_CUDNN_ADVICE "Install cuDNN 9.8 or later, from NVIDIA's packages or with `pip install nvidia-cudnn-cu13`, or "
  "say where it is (a folder with include/ and lib/) with\n  cmake --preset cuda -DCMAKE_PREFIX_PATH=.../nvidia/cudnn\n"
  "Without a GPU there is no need of it:\n  cmake --preset release")
if(NOT SHOAL_CUDNN_INCLUDE OR NOT SHOAL_CUDNN_LIBRARY)
  message(FATAL_ERROR "cuDNN, which computes convolutions on NVIDIA GPUs, was not found (its header cudnn_graph.h: "
    "${SHOAL_CUDNN_INCLUDE}, its library libcudnn.so.9: ${SHOAL_CUDNN_LIBRARY}). " ${SHOAL_CUDNN_ADVICE})
endif()
file(STRINGS "${SHOAL_CUDNN_INCLUDE}/cudnn_version.h" LINES REGEX "^#define CUDNN_(MAJOR|MINOR) +[0-9]+")
list(TRANSFORM LINES REPLACE "^#define CUDNN_(MAJOR|MINOR) +" "")
list(JOIN LINES "." SHOAL_CUDNN_VERSION)
# 9.8 added the description of a device to the graph API. Another major version has another API.
if(SHOAL_CUDNN_VERSION VERSION_LESS 9.8 OR NOT SHOAL_CUDNN_VERSION VERSION_LESS 10)
  message(FATAL_ERROR "The cuDNN in ${SHOAL_CUDNN_INCLUDE} is ${SHOAL_CUDNN_VERSION}; Shoal needs 9.8 or a later 9. "
    ${SHOAL_CUDNN_ADVICE})
endif()
message(STATUS "cuDNN ${SHOAL_CUDNN_VERSION}: ${SHOAL_CUDNN_LIBRARY}")
