// Carries the precompiled headers (SHOAL_HEADERS in the top CMakeLists.txt).
