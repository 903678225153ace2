use super::*;

#[test]
fn process_name_with_parentheses_shifts_no_field() {
    let stat = "42 (a ) S 9 (b) S 1 42 42 0 -1 4194560 1208 0 3 0 12 5 0 0 20 0 4 0 98765 1000 250 18446744073709551615";
    assert_eq!(start_ticks(stat), Some(98765));
    for broken in ["", "42", "42 (cliffwatch) S 1 2 3", "42 (cliffwatch) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"] {
        assert_eq!(start_ticks(broken), None, "{broken}");
    }
}

#[test]
fn memory_without_unit_is_left_out() {
    assert_eq!(resident_kib("Name:\tcliffwatch\nVmHWM:\t   9000 kB\nVmRSS:\t   8124 kB\n"), Some(8124));
    for broken in ["", "VmRSS:", "VmRSS:\t8124", "VmRSS:\tmany kB"] {
        assert_eq!(resident_kib(broken), None, "{broken}");
    }
}

#[test]
fn age_of_process_is_known() {
    let age = age().expect("/proc is there");
    assert!(age < TimeDelta::days(1), "this test has run for {age}");
}
