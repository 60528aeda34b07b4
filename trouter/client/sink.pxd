from trouter.engine.deliveries cimport new_delivery
from trouter.engine.link cimport IncomingLink
from trouter.engine.ports cimport Delivery, LinkPort, LinkSink, SessionPort
