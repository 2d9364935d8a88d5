//! Objects and archives of others: reading, linking and listing them never panics, and what is linked reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolchain::archive::{add_needed, is_archive, read};
use toolchain::linker::{LinkSetting, link_files};
use toolchain::listing;
use toolchain::object_file::ObjectFile;

fuzz_target!(|bytes: &[u8]| {
    let mut objects = Vec::new();
    if is_archive(bytes) {
        let Ok(members) = read(bytes) else { return };
        add_needed(&mut objects, members.into_iter().map(|member| member.object).collect(), &["f".to_owned()]);
    } else {
        objects.extend(ObjectFile::parse(bytes));
    }
    for object in &objects {
        let _ = (listing::object(object), listing::symbols(object));
    }
    for keep_all in [true, false] {
        let setting = LinkSetting { base: 0x4c100, entry: None, roots: vec!["f".to_owned()], keep_all };
        if let Ok(image) = link_files(&objects, &setting) {
            let _ = image.map(&objects);
            assert!(ObjectFile::parse(&image.write(0)).is_ok(), "the linked file is not readable");
        }
    }
});
