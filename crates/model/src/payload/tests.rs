use proptest::prelude::*;

use super::*;

/// The union as the 40 bytes that stand in a record.
fn bytes(data: [u64; 5]) -> [u8; 40] {
    let mut out = [0; 40];
    for (chunk, word) in out.chunks_exact_mut(8).zip(data) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    out
}

#[test]
fn there_are_52_payloads_and_the_lookup_finds_each_in_its_phases_only() {
    assert_eq!(ALL.len(), 52);
    let mut found = 0;
    for event in EventType::ALL {
        for phase in Phase::ALL {
            if let Some(layout) = layout(event, phase) {
                assert_eq!(layout.event, event);
                assert!(layout.phases.contains(&phase));
                found += 1;
            }
        }
    }
    assert_eq!(found, ALL.iter().map(|l| l.phases.len()).sum::<usize>());
    assert!(layout(EventType::Generic, Phase::Instant).is_none());
    assert!(layout(EventType::ModelLoad, Phase::Start).is_none());
    assert_eq!(
        layout(EventType::ModelLoad, Phase::Stop).map(|l| l.name),
        Some("ModelLoadStop")
    );
    assert_eq!(
        layout(EventType::DmaMemAlloc, Phase::Instant).map(|l| l.name),
        Some("DmaMemAllocStart")
    );
}

#[test]
fn fields_stand_at_their_byte_offsets() {
    let hint = HwNotify {
        device_core_idx: 0x0403_0201,
        hint: 0x0605,
        custom_data: 0x0C0B_0A09,
        exec_id: 0x1817_1615_1413_1211,
        nc_timestamp_ns: 0x201F_1E1D_1C1B_1A19,
        cpu_timestamp_ns: 0x2827_2625_2423_2221,
    };
    let expected: [u8; 40] = std::array::from_fn(|i| match i {
        6..8 | 12..16 => 0,
        _ => u8::try_from(i + 1).unwrap(),
    });
    assert_eq!(bytes(hint.to_data()), expected);

    let peer = EncBarrier {
        peer_id: -2,
        exec_id: 1,
        nec_dev_id: i32::MIN,
    };
    let b = bytes(peer.to_data());
    assert_eq!(
        (&b[0..8], &b[16..24]),
        (
            &[0xFE, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0][..],
            &[0, 0, 0, 0x80, 0, 0, 0, 0][..]
        )
    );

    let alloc = DmaMemAllocStart {
        is_nc_hbm: false,
        is_aligned: true,
        mla_idx: 7,
        ..Default::default()
    };
    assert_eq!(bytes(alloc.to_data())[8..16], [0, 1, 0, 0, 7, 0, 0, 0]);
}

#[test]
fn json_keys_are_those_of_the_table() {
    let keys = |l: &PayloadLayout| l.json_keys.iter().map(|k| k.name).collect::<Vec<_>>();
    assert_eq!(
        keys(&DeviceExecStart::LAYOUT),
        ["device_core_idx", "exec_id", "nc_timestamp_ns", "model_id"]
    );
    assert_eq!(
        DeviceExecStart::LAYOUT.json_keys[3].field,
        None,
        "the model comes from another event"
    );
    assert_eq!(NumErrInstant::LAYOUT.json_keys[3].field, None);
    assert_eq!(
        keys(&CcExecStart::LAYOUT),
        ["gid", "op_id", "nc_timestamp_ns", "exec_id", "algorithm"]
    );
    assert_eq!(
        CcExecStart::LAYOUT.json_keys[4].rendering,
        Rendering::Algorithm
    );
    assert_eq!(
        DmaMemAllocStop::LAYOUT.json_keys[4].rendering,
        Rendering::Hex
    );
    let from_elsewhere = ALL
        .iter()
        .flat_map(|l| l.json_keys)
        .filter(|k| k.field.is_none())
        .count();
    assert_eq!(from_elsewhere, 2);
}

#[test]
fn any_nonzero_byte_is_true() {
    assert!(AsyncSemaWait::from_data(&[0, 0x80, 0, 0, 0]).has_work);
    assert!(
        !AsyncSemaWait::from_data(&[0, 0xFF00, 0, 0, 0]).has_work,
        "the byte beside it is padding"
    );
}

/// Reads every field through the table and compares with what the struct's own round trip keeps.
fn table_and_struct_agree<P: Payload + PartialEq + std::fmt::Debug>(data: &[u64; 5]) {
    let payload = P::from_data(data);
    let clean = payload.to_data();
    assert_eq!(P::from_data(&clean), payload, "{}", P::LAYOUT.name);
    for field in P::LAYOUT.fields {
        assert_eq!(
            field.read(data),
            field.read(&clean),
            "{}.{}",
            P::LAYOUT.name,
            field.name
        );
    }
}

proptest! {
    #[test]
    fn structs_and_tables_read_the_same_values_from_any_words(data: [u64; 5]) {
        table_and_struct_agree::<ModelLoadStop>(&data);
        table_and_struct_agree::<PostRequest>(&data);
        table_and_struct_agree::<CcExecStart>(&data);
        table_and_struct_agree::<EncBarrierRecv>(&data);
        table_and_struct_agree::<ModelSwitch>(&data);
        table_and_struct_agree::<AsyncSemaWait>(&data);
        table_and_struct_agree::<HwNotify>(&data);
        table_and_struct_agree::<DmemBufCopyin>(&data);
        table_and_struct_agree::<DmaMemAllocStart>(&data);
        table_and_struct_agree::<DmaMemDeallocStart>(&data);
        table_and_struct_agree::<HostccLoad>(&data);
    }
}
