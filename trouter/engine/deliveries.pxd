from trouter.engine.ports cimport Delivery, LinkPort


cdef inline Delivery new_delivery(LinkPort link):
    cdef Delivery delivery = Delivery.__new__(Delivery)
    delivery.link = link
    return delivery
