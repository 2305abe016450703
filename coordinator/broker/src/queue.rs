//! The outbound queue of one session.

use std::collections::VecDeque;

use rumqttc::QoS;

use crate::message::Delivery;

/// Messages a client may leave unacknowledged.
const IN_FLIGHT_MAX: usize = 64;

/// Deliveries in order: those that wait, and those that were sent and not yet acknowledged.
#[derive(Debug, Default)]
pub(crate) struct DeliveryQueue {
    waiting: VecDeque<Delivery>,
    in_flight: VecDeque<Delivery>,
    /// Of both.
    bytes: usize,
    last_packet_id: u16,
}

/// A delivery that was acknowledged.
pub(crate) struct AcknowledgedDelivery {
    pub(crate) bytes: usize,
    /// True if no further delivery could be sent before.
    pub(crate) unblocked: bool,
}

impl DeliveryQueue {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, delivery: Delivery) {
        self.bytes += delivery.bytes();
        self.waiting.push_back(delivery);
    }

    /// Puts unacknowledged deliveries back in front, under their packet ids.
    pub(crate) fn resend(&mut self) {
        for mut delivery in self.in_flight.drain(..).rev() {
            delivery.duplicate = true;
            self.waiting.push_front(delivery);
        }
    }

    /// The next deliveries, of about `bytes` bytes; none while too many are unacknowledged.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<Delivery> {
        let (mut taken, mut taken_bytes) = (Vec::new(), 0);
        while taken_bytes < bytes && self.in_flight.len() < IN_FLIGHT_MAX {
            let Some(mut delivery) = self.waiting.pop_front() else { break };
            taken_bytes += delivery.bytes();
            if delivery.qos != QoS::AtMostOnce {
                if delivery.packet_id == 0 {
                    delivery.packet_id = self.next_packet_id();
                }
                self.in_flight.push_back(delivery.clone());
            }
            taken.push(delivery);
        }
        taken
    }

    /// Removes the delivery with this packet id.
    pub(crate) fn acknowledge(&mut self, packet_id: u16) -> Option<AcknowledgedDelivery> {
        let index = self.in_flight.iter().position(|delivery| delivery.packet_id == packet_id)?;
        let unblocked = self.in_flight.len() >= IN_FLIGHT_MAX;
        let delivery = self.in_flight.remove(index)?;
        Some(AcknowledgedDelivery { bytes: delivery.bytes(), unblocked })
    }

    /// Subtracts bytes of deliveries that are done.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    fn next_packet_id(&mut self) -> u16 {
        loop {
            self.last_packet_id = self.last_packet_id.checked_add(1).unwrap_or(1);
            if self.in_flight.iter().all(|delivery| delivery.packet_id != self.last_packet_id) {
                return self.last_packet_id;
            }
        }
    }
}
