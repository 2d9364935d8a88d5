//! Programs that are called as those of the vendor's SDK are, and assemble: what the rule `toolchain` asks of a compiler and no more.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::binary::ipubuild;

/// A compiler that writes a container, and a program that takes the object out of it. Both are `sh` scripts.
///
/// # Panics
/// When files cannot be written, or `ipubuild` cannot be built.
pub fn install(folder: &Path) {
    let assembler = ipubuild().display();
    let compiler = format!(
        r#"#!/bin/sh
# popc --target ipu21 FLAGS -I FOLDER -DNAME=VALUE -o FILE SOURCE
defines=
while [ $# -gt 1 ]; do
    case "$1" in
        --target) [ "$2" = ipu21 ] || exit 3; shift ;;
        -I) folder="$2"; shift ;;
        -D*) defines="$defines -D ${{1#-D}}" ;;
        -o) made="$2"; shift ;;
    esac
    shift
done
{assembler} asm -I "$folder" $defines "$1" -o "$made.o" || exit
{{ echo container; cat "$made.o"; }} > "$made"
"#
    );
    program(&folder.join("popc"), &compiler);
    let extractor = "#!/bin/sh\n# pop-objdump extract ipu21 FILE\n[ \"$1 $2\" = \"extract ipu21\" ] && tail -c +11 \"$3\"\n";
    program(&folder.join("pop-objdump"), extractor);
}

/// Writes a file that can be executed.
///
/// # Panics
/// When it cannot.
pub fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
    fs::write(path, text).expect("files can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a file can be made executable");
}
