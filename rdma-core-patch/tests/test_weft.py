# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
Test module for weft's device: what its provider does beside the verbs that other modules test over
queue pairs without rdma_cm, which iWARP does not have.
"""

import errno
import unittest

from pyverbs.cq import CQ
from pyverbs.mr import MR, MW
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QPCap, QPEx, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import RecvWR, SGE
import pyverbs.enums as e

from tests.base import PyverbsAPITestCase

WEFT_VENDOR_ID = 0x776674
WAITING = 8


class WeftTest(PyverbsAPITestCase):
    def setUp(self):
        super().setUp()
        if self.attr.vendor_id != WEFT_VENDOR_ID:
            raise unittest.SkipTest('Not a device of weft')

    def assert_refused(self, error_code, call, *args, **kwargs):
        with self.assertRaises(PyverbsRDMAError) as caught:
            call(*args, **kwargs)
        self.assertEqual(caught.exception.error_code, error_code)

    def test_srq_resize(self):
        """
        A shared receive queue that waits for messages gets a larger ring: it keeps what waits, has
        room for more, and does not shrink below.
        """
        with PD(self.ctx) as pd, MR(pd, 64, e.IBV_ACCESS_LOCAL_WRITE) as mr, \
                SRQ(pd, SrqInitAttr(SrqAttr(max_wr=WAITING, max_sge=1))) as srq:
            room = srq.query().max_wr
            for i in range(room):
                srq.post_recv(RecvWR(wr_id=i, num_sge=1, sg=[SGE(mr.buf, 64, mr.lkey)]))
            with self.assertRaises(PyverbsRDMAError):
                srq.post_recv(RecvWR(num_sge=1, sg=[SGE(mr.buf, 64, mr.lkey)]))
            srq.modify(SrqAttr(max_wr=4 * room), e.IBV_SRQ_MAX_WR)
            self.assertGreaterEqual(srq.query().max_wr, 4 * room)
            for i in range(2 * room):
                srq.post_recv(RecvWR(wr_id=i, num_sge=1, sg=[SGE(mr.buf, 64, mr.lkey)]))
            self.assert_refused(errno.EINVAL, srq.modify, SrqAttr(max_wr=room), e.IBV_SRQ_MAX_WR)

    def test_cq_resize(self):
        """
        A completion queue grows and shrinks while it is empty, up to the device's limit.
        """
        with CQ(self.ctx, 10) as cq:
            cq.resize(1000)
            cq.resize(10)
            self.assert_refused(errno.EINVAL, cq.resize, self.attr.max_cqe + 1)

    def test_extended_qp(self):
        """
        An extended queue pair has the operations of iWARP and of RFC 7306, and refuses others.
        """
        iwarp = (e.IBV_QP_EX_WITH_RDMA_WRITE | e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_SEND_WITH_INV |
                 e.IBV_QP_EX_WITH_RDMA_READ | e.IBV_QP_EX_WITH_LOCAL_INV | e.IBV_QP_EX_WITH_BIND_MW)
        rfc7306 = (e.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | e.IBV_QP_EX_WITH_SEND_WITH_IMM |
                   e.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | e.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
        with PD(self.ctx) as pd, CQ(self.ctx, 10) as cq:
            def create(ops):
                init = QPInitAttrEx(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, pd=pd, send_ops_flags=ops,
                                    cap=QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1,
                                              max_recv_sge=1),
                                    comp_mask=e.IBV_QP_INIT_ATTR_PD |
                                    e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
                QPEx(self.ctx, init).close()
            create(iwarp)
            create(iwarp | rfc7306)
            self.assert_refused(errno.EOPNOTSUPP, create, iwarp | e.IBV_QP_EX_WITH_TSO)

    def test_windows(self):
        """
        Memory windows of both types.
        """
        with PD(self.ctx) as pd:
            keys = set()
            for kind in (e.IBV_MW_TYPE_1, e.IBV_MW_TYPE_2):
                window = MW(pd, kind)
                keys.add(window.rkey >> 8)
                window.close()
            self.assertNotIn(0, keys)
