from trouter.core.message cimport IncomingDelivery, OutgoingDelivery
from trouter.engine.ports cimport LinkPort


cdef inline IncomingDelivery new_incoming(LinkPort link):
    cdef IncomingDelivery delivery = IncomingDelivery.__new__(IncomingDelivery)
    delivery.link = link
    return delivery


cdef inline OutgoingDelivery new_outgoing(LinkPort link):
    cdef OutgoingDelivery delivery = OutgoingDelivery.__new__(OutgoingDelivery)
    delivery.link = link
    return delivery
