# musl_gcc DEBIAN-ARCHITECTURE TOOL FOLDER: prints the path of a linker for static musl binaries. Sourced by cross/build.
#
# Debian has no cross package of musl, so the development package of the other architecture is fetched with a package list of
# its own (nothing on this machine is set up for foreign packages) and unpacked into FOLDER.
musl_gcc() {
  local architecture=$1 tool=$2 folder=$3 library linker=$3/$2-musl-gcc
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
  library=$(echo "$folder"/usr/lib/*-linux-musl*)
  if [ ! -e "$library/libc.a" ]; then
    touch "$folder/status"
    local apt=(apt-get -qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"
      -o "Dir::State=$folder" -o "Dir::State::Lists=$folder/lists" -o "Dir::State::status=$folder/status"
      -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User=root)
    "${apt[@]}" update >&2
    (cd "$folder" && "${apt[@]}" download musl-dev >&2 && dpkg -x musl-dev_*.deb .)
    library=$(echo "$folder"/usr/lib/*-linux-musl*)
  fi
  # gcc's unwinder asks glibc where the tables are. Panics abort in this build, so nobody has to find any.
  echo 'int _dl_find_object(void *address, void *found) { return -1; }' | "$tool-gcc" -O2 -c -x c - -o "$folder/unwind.o"
  # The standard library asks for LLVM's unwinder by name; gcc's serves.
  ln -sf "$("$tool-gcc" -print-file-name=libgcc_eh.a)" "$library/libunwind.a"
  cat >"$linker" <<LINKER
#!/bin/sh
exec $tool-gcc -nostdlib -static $library/crt1.o $library/crti.o -L$library "\$@" $folder/unwind.o \\
  -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group $library/crtn.o
LINKER
  chmod +x "$linker"
  echo "$linker"
}
