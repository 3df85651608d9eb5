// Carries the precompiled headers of all tests (shoal_test in the top CMakeLists.txt).
