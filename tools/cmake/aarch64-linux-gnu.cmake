# Toolchain: Debian's cross compiler for 64-bit Arm, run under qemu-user. Needs
#   dpkg --add-architecture arm64
#   apt-get install g++-aarch64-linux-gnu qemu-user libssl-dev:arm64 libpcre2-dev:arm64 libsodium-dev:arm64 libutf8proc-dev:arm64 libfmt-dev:arm64
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu /usr)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# FindOpenSSL asks the build machine's pkg-config, which answers for that machine.
set(OPENSSL_CRYPTO_LIBRARY /usr/lib/aarch64-linux-gnu/libcrypto.so CACHE FILEPATH "")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
